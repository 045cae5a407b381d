// What every stencil kernel knows of the work: output(p) = sum over taps t of input(p + t - radius) * weight(t).
#import workgroup/index

const FILTER_X: u32 = 3u;
const FILTER_Y: u32 = 3u;
const FILTER_Z: u32 = 1u;
const RADIUS_X: u32 = FILTER_X / 2u;
const RADIUS_Y: u32 = FILTER_Y / 2u;
const RADIUS_Z: u32 = FILTER_Z / 2u;
const RADIUS: vec3<u32> = vec3(RADIUS_X, RADIUS_Y, RADIUS_Z);

struct Params {
    w: u32,        // extents of input and output
    h: u32,
    d: u32,
    groups: u32,   // groups of PACK elements (or of a vec4's) in a row
    tiles_x: u32,  // tiles along x and along y
    tiles_y: u32,
    tiles: u32,    // workgroups with work
    rows: u32,     // h d
#if UNIFORM
    weights: array<vec4<f32>, WEIGHT_VECTORS>,
#endif
}
@group(0) @binding(0) var<uniform> params: Params;
#if UNIFORM
// The filter in "constant memory": lanes that ask for one weight together get it by one broadcast.
const WEIGHT_VECTORS: u32 = 16u;

fn weight(tap: u32) -> f32 { return params.weights[tap / 4u][tap % 4u]; }
#else
@group(0) @binding(3) var<storage, read> filter_weights: array<f32>;

fn weight(tap: u32) -> f32 { return filter_weights[tap]; }
#endif

fn extents() -> vec3<u32> { return vec3(params.w, params.h, params.d); }

// Where coordinate `i` of an axis reads; always inside. No filter is longer than its axis, so one period is
// all that it can be off by where the value counts.
fn fold(i: i32, extent: u32) -> u32 {
    let n = i32(extent);
#if WRAP
    let once = select(i, i + n, i < 0);
    return u32(clamp(select(once, once - n, once >= n), 0, n - 1));
#else
    return u32(clamp(i, 0, n - 1));
#endif
}

// Whether coordinate `i` of an axis counts: what is outside is 0 under the boundary ZERO.
fn counts(i: i32, extent: u32) -> bool {
#if ZERO
    return i >= 0 && i < i32(extent);
#else
    return true;
#endif
}
