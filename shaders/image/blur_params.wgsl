// What every kernel of the box blur knows.
#import workgroup/index

struct Params {
    w: u32,
    h: u32,
    groups: u32,  // groups of 4 pixels in a row
    radius: u32,
    tiles_x: u32, // tiles along x
    work: u32,    // workgroups (or invocations) with work
}
@group(0) @binding(0) var<uniform> params: Params;

// First and last of the pixels around `i` that lie inside.
fn reach(i: u32, extent: u32) -> vec2<u32> {
    return vec2(max(i, params.radius) - params.radius, min(i + params.radius, extent - 1u));
}
