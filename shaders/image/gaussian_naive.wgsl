// Gaussian blur by its definition: one thread computes a group of four elements, and reads the window of each from
// memory.
#import conv/lines_params
#import conv/lines_floats_in as source
#import conv/lines_floats_out as target
#import conv/lines_row

const WORKGROUP_SIZE: u32 = 256u;

@compute @workgroup_size(WORKGROUP_SIZE)
fn gaussian_naive(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i >= params.tiles { return; }
    let p = vec3(i % params.groups * 4u, i / params.groups % params.h, i / params.groups / params.h);
    let taps_x = 2u * params.radius_x + 1u;
    var sum = vec4<f32>();
    for (var j = 0u; j <= 2u * params.radius_y; j++) {
        let y = i32(p.y + j) - i32(params.radius_y);
        if counts(y, params.h) {
            let row = (p.z * params.h + fold(y, params.h)) * params.w;
            var e = i32(p.x) - i32(params.radius_x * params.step);
            for (var tap = 0u; tap < taps_x; tap++) {
                sum = fma(params.weights[tap] * params.weights[taps_x + j], four(row, e), sum);
                e += i32(params.step);
            }
        }
    }
    put_group(p, sum);
}
