// Box blur by its definition: one thread computes a group of four elements, and reads the window of each from memory.
#import conv/lines_params
#import conv/lines_floats_in as source
#import conv/lines_floats_out as target
#import conv/lines_row
#import image/blur_mean

const WORKGROUP_SIZE: u32 = 256u;

@compute @workgroup_size(WORKGROUP_SIZE)
fn blur_naive(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i >= params.tiles { return; }
    let p = vec3(i % params.groups * 4u, i / params.groups % params.h, i / params.groups / params.h);
    let y = reach(p.y, params.radius_y, params.h);
    var total = Total();
    for (var j = y.x; j <= y.y; j++) {
        // The sum of a row of bytes is exact in f32.
        var sum = vec4<f32>();
        var e = i32(p.x) - i32(params.radius_x * STEP);
        for (var tap = 0u; tap <= 2u * params.radius_x; tap++) {
            sum += four((p.z * params.h + j) * params.w, e);
            e += i32(STEP);
        }
        total += Total(sum);
    }
    put_group(p, mean(p, total));
}
