// dy as the factor A of the gradient with respect to weights: a row is a channel, one part in every image, and k
// counts the outputs of all images. VEC_A: these parts are whole vec4s.
const WALKED_a: bool = true;

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
