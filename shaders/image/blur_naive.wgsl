// Box blur, as the definition says it: one invocation computes the four pixels of a group, and reads the whole
// window of each from memory.
#import image/blur_params
#import image/blur_group

const WORKGROUP_SIZE: u32 = 256u;

fn total(p: vec2<u32>) -> u32 {
    let x = reach(p.x, params.w);
    let y = reach(p.y, params.h);
    var sum = 0u;
    for (var j = y.x; j <= y.y; j++) {
        for (var i = x.x; i <= x.y; i++) {
            sum += byte_at(j * params.w + i);
        }
    }
    return sum;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn blur_naive(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i >= params.work {
        return;
    }
    blur_group(vec2(i % params.groups * PACK, i / params.groups));
}
