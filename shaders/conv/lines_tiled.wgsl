// A filter that is a product of two lines, by tiles of 32 groups x `extent` rows: a workgroup writes the sums along
// x of its rows and of those above and below to workgroup memory, and then adds these along y.
#import conv/lines_params
#import conv/lines_floats_in as source
#import conv/lines_floats_out as target
#import conv/finish_plain as finish
#import conv/lines_along
#import conv/lines_across

const WORKGROUP_SIZE: u32 = 256u;
const WIDTH: u32 = 32u; // groups
const ROWS: u32 = 32u;  // of a tile with those above and below, at most

alias Group = vec4<f32>;

var<workgroup> wg_sums: array<vec4<f32>, ROWS * WIDTH>;

fn value(place: vec2<u32>, j: u32) -> vec4<f32> { return wg_sums[(place.y + j) * WIDTH + place.x]; }

@compute @workgroup_size(WORKGROUP_SIZE)
fn lines_tiled(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = workgroup_index(group);
    if tile >= params.tiles { return; }
    let row = tile / params.tiles_x;
    let first = vec3(tile % params.tiles_x * WIDTH, row % params.tiles_y * params.extent, row / params.tiles_y);
    for (var i = lane; i < (params.extent + 2u * params.radius_y) * WIDTH; i += WORKGROUP_SIZE) {
        let below = first.y + i / WIDTH;
        let y = i32(below) - i32(params.radius_y);
        let x = first.x + i % WIDTH;
        var sum = vec4<f32>();
        if x < params.groups && below < params.h + 2u * params.radius_y && counts(y, params.h) {
            sum = along((first.z * params.h + fold(y, params.h)) * params.w, x * 4u);
        }
        wg_sums[i] = sum;
    }
    workgroupBarrier();

    let x = lane % WIDTH;
    for (var y = lane / WIDTH * 4u; y < params.extent; y += WORKGROUP_SIZE / WIDTH * 4u) {
        let p = vec3((first.x + x) * 4u, first.y + y, first.z);
        if p.x < params.w && p.y < params.h {
            let sums = across(vec2(x, y), 2u * params.radius_x + 1u);
            put_across(p, vec3(0u, 1u, 0u), sums, min(params.h - p.y, params.extent - y));
        }
    }
}
