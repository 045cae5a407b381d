// The gradient of a convolution layer with respect to its weights: the register-tiled product of dy and windows
// that are gathered from x while they are staged. k counts the outputs of all images. A row of A is a channel of
// dy, one part in every image. VEC_A: these parts are whole vec4s.
#import conv/conv_product_windows

#if VEC_A
@group(0) @binding(1) var<storage, read> a: array<vec4<T>>;
#else
@group(0) @binding(1) var<storage, read> a: array<T>;
#endif

struct Walk {
    pixel: u32,
    at: u32,
}

#if LAST
// Channels of dy.
const APART_A: u32 = 1u;
fn line_a(row: u32) -> u32 { return base_a + row; }
#else
fn line_a(row: u32) -> u32 { return base_a + row * params.pixels; }
#endif

fn walk_a(k: u32) -> Walk {
#if LAST
    return Walk(k % params.pixels, k * APART_A);
#else
    return Walk(k % params.pixels, k + k / params.pixels * params.jump_a);
#endif
}

fn step_a(from_: Walk) -> Walk {
    var walk = from_;
    walk.pixel += params.step_pixels;
    walk.at += params.step_a;
    if walk.pixel >= params.pixels {
        walk.pixel -= params.pixels;
        walk.at += params.jump_a;
    }
    return walk;
}

#if VEC_A
fn load_a(line: u32, walk: Walk) -> vec4<T> {
    return a[(line + walk.at) / 4u];
}
#else
fn load_a(line: u32, walk: Walk) -> T { return a[line + walk.at]; }
#endif

const BUFFERS: u32 = 2u;
const WALKED_a: bool = true;
#import dense/gemm_register_tiles

@compute @workgroup_size(LANES)
fn conv_gradients(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let index = workgroup_index(workgroup);
    if index >= params.tiles { return; }
    let part = part_of(index);
#import dense/gemm_register_product
}
