// Brightness of RGB pixels of f32: one thread computes ITEMS pixels, WORKGROUP_SIZE apart. With HALVES of f16: ITEMS
// words of two.
#import workgroup/index
#import image/grey_params
#if HALVES
#import element/halves
#endif

const WORKGROUP_SIZE: u32 = 256u;
const ITEMS: u32 = 4u;

#if HALVES
@group(0) @binding(1) var<storage, read> input: array<u32>;
@group(0) @binding(2) var<storage, read_write> output: array<u32>;

fn load(i: u32) -> f32 { return decode(input[i / 2u], i % 2u); }
#else
@group(0) @binding(1) var<storage, read> input: array<f32>;
@group(0) @binding(2) var<storage, read_write> output: array<f32>;
#endif

#if SOURCE
const WEIGHTS = vec3<f32>(0.3, 0.6, 0.1);
#else
const WEIGHTS = vec3<f32>(0.299, 0.587, 0.114);
#endif

#if HALVES
fn grey(i: u32) -> f32 {
    let r = i * params.step;
    let g = r + params.colour;
    return WEIGHTS.x * load(r) + WEIGHTS.y * load(g) + WEIGHTS.z * load(g + params.colour);
}
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn grey_floats(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first = workgroup_index(group) * WORKGROUP_SIZE * ITEMS + lane;
    for (var k = 0u; k < ITEMS; k++) {
        let i = first + k * WORKGROUP_SIZE;
#if HALVES
        if 2u * i + 1u < params.pixels {
            output[i] = encode(grey(2u * i), grey(2u * i + 1u));
        } else if 2u * i < params.pixels {
            // What lies behind the last pixel keeps its bits.
            output[i] = (output[i] & 0xffff0000u) | encode(grey(2u * i), 0.0);
        }
#else
        if i < params.pixels {
            let r = i * params.step;
            let g = r + params.colour;
            output[i] = WEIGHTS.x * input[r] + WEIGHTS.y * input[g] + WEIGHTS.z * input[g + params.colour];
        }
#endif
    }
}
