// A filter by the definition. One thread computes one output (u8 and f16: the four of a group) and reads all its
// inputs from memory. The filter lies in a storage buffer, or with UNIFORM in constant memory.
#import conv/stencil_params
#import conv/stencil_floats as element
#import conv/stencil_at

const WORKGROUP_SIZE: u32 = 256u;

fn result(p: vec3<u32>) -> f32 {
    let first = vec3<i32>(p) - vec3<i32>(RADIUS);
    var sum = 0.0;
    var tap = 0u;
    for (var z = 0; z < i32(FILTER_Z); z++) {
        for (var y = 0; y < i32(FILTER_Y); y++) {
            for (var x = 0; x < i32(FILTER_X); x++) {
                sum = fma(weight(tap), at(first + vec3(x, y, z)), sum);
                tap++;
            }
        }
    }
    return sum;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn stencil_naive(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    let row = i / params.groups;
    if row >= params.rows { return; }
    emit(vec3(i % params.groups * PACK, row % params.h, row / params.h));
}
