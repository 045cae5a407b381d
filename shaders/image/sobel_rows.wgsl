// Sobel gradients by columns of groups: one thread walks down ROWS groups of four elements, reads each row once, and
// keeps its sums for the two rows below.
#import conv/lines_params
#import conv/lines_floats_in as source
#import conv/lines_floats_out as target
#import image/sobel_gradient
#import image/sobel_four as row

const WORKGROUP_SIZE: u32 = 256u;
const ROWS: u32 = 8u;

@compute @workgroup_size(WORKGROUP_SIZE)
fn sobel_rows(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i >= params.tiles { return; }
    let blocks = (params.h - 1u) / ROWS + 1u;
    let rest = i / params.groups;
    let p = vec3(i % params.groups * 4u, rest % blocks * ROWS, rest / blocks);
    var above = row_of(p, i32(p.y) - 1);
    var here = row_of(p, i32(p.y));
    for (var y = p.y; y < min(p.y + ROWS, params.h); y++) {
        let below = row_of(p, i32(y) + 1);
        put_group(vec3(p.x, y, p.z), gradient(above, here, below));
        above = here;
        here = below;
    }
}
