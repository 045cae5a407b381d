// The parameters of every filter kernel: output(p) = sum over taps t of input(p + t - radius) * weight(t).
#import workgroup/index
#import conv/stencil_fold

const FILTER_X: u32 = 3u;
const FILTER_Y: u32 = 3u;
const FILTER_Z: u32 = 1u;
const RADIUS_X: u32 = FILTER_X / 2u;
const RADIUS_Y: u32 = FILTER_Y / 2u;
const RADIUS_Z: u32 = FILTER_Z / 2u;
const RADIUS: vec3<u32> = vec3(RADIUS_X, RADIUS_Y, RADIUS_Z);

struct Params {
    w: u32,        // extents of input and output
    h: u32, d: u32,
    groups: u32,   // groups of PACK elements (or of a vec4's) in a row
    tiles_x: u32,  // tiles along x and along y
    tiles_y: u32,
    tiles: u32,    // workgroups with work
    rows: u32,     // h d
#if UNIFORM && !OPERAND
    weights: array<vec4<f32>, WEIGHT_VECTORS>,
#endif
}
@group(0) @binding(0) var<uniform> params: Params;
#if UNIFORM
// The filter in "constant memory": lanes that read one weight together get it by one broadcast.
const WEIGHT_VECTORS: u32 = 16u;

#if OPERAND
@group(0) @binding(3) var<uniform> filter_weights: array<vec4<f32>, WEIGHT_VECTORS>;

fn weight(tap: u32) -> f32 { return filter_weights[tap / 4u][tap % 4u]; }
#else
fn weight(tap: u32) -> f32 { return params.weights[tap / 4u][tap % 4u]; }
#endif
#else
@group(0) @binding(3) var<storage, read> filter_weights: array<f32>;

fn weight(tap: u32) -> f32 { return filter_weights[tap]; }
#endif
