// Sobel gradients by their definition: one thread computes a group of four elements, and reads the rows above, at and
// below it.
#import conv/lines_params
#import conv/lines_floats_in as source
#import conv/lines_floats_out as target
#import image/sobel_gradient
#import image/sobel_four

const WORKGROUP_SIZE: u32 = 256u;

@compute @workgroup_size(WORKGROUP_SIZE)
fn sobel_naive(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i >= params.tiles { return; }
    let p = vec3(i % params.groups * 4u, i / params.groups % params.h, i / params.groups / params.h);
    let y = i32(p.y);
    put_group(p, gradient(row_of(p, y - 1), row_of(p, y), row_of(p, y + 1)));
}
