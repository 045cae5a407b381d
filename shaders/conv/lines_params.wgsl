// The parameters of kernels that take rows by groups of four elements. Neighbours along x stand `step` apart: the
// channels of a pixel may lie between them.
#import workgroup/index
#import conv/stencil_fold

struct Params {
    w: u32,        // elements in a row
    h: u32,
    d: u32,        // planes
    groups: u32,   // groups of 4 elements in a row
    tiles_x: u32,  // tiles along x and along y
    tiles_y: u32,
    tiles: u32,    // workgroups (or threads) with work
    step: u32, radius_x: u32,
    radius_y: u32, // of the line across, whatever its axis
    extent: u32,   // of that axis; of a tile: its rows
    pitch: u32,    // groups from one element to the next along it
#if LINES
    weights: array<vec4<f32>, LINE_WEIGHTS>,
#endif
}
@group(0) @binding(0) var<uniform> params: Params;
#if LINES
// Weights of the lines, one line after the other, each weight four times.
const LINE_WEIGHTS: u32 = 16u;
#endif
