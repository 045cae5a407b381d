// Brightness of RGB pixels of f32: one thread computes ITEMS pixels, WORKGROUP_SIZE apart.
#import workgroup/index
#import image/grey_params

const WORKGROUP_SIZE: u32 = 256u;
const ITEMS: u32 = 4u;

@group(0) @binding(1) var<storage, read> input: array<f32>;
@group(0) @binding(2) var<storage, read_write> output: array<f32>;

#if SOURCE
const WEIGHTS = vec3<f32>(0.3, 0.6, 0.1);
#else
const WEIGHTS = vec3<f32>(0.299, 0.587, 0.114);
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn grey_floats(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first = workgroup_index(group) * WORKGROUP_SIZE * ITEMS + lane;
    for (var k = 0u; k < ITEMS; k++) {
        let i = first + k * WORKGROUP_SIZE;
        if i < params.pixels {
            let r = i * params.step;
            let g = r + params.colour;
            output[i] = WEIGHTS.x * input[r] + WEIGHTS.y * input[g] + WEIGHTS.z * input[g + params.colour];
        }
    }
}
