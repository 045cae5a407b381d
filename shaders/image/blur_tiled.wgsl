// Box blur by tiles of TILE x TILE elements: a workgroup loads its tile with a halo of RADIUS pixels (0 outside the
// image) into workgroup memory; each thread computes a group of four elements from there.
#import conv/lines_params
#import conv/lines_floats_in as source
#import conv/lines_floats_out as target
#import image/blur_mean

const TILE: u32 = 32u;
const RADIUS: u32 = 1u;
const HALO: u32 = RADIUS * STEP;
const WIDTH: u32 = TILE + 2u * HALO;
const HEIGHT: u32 = TILE + 2u * RADIUS;
const WORKGROUP_SIZE: u32 = TILE / PACK * TILE;

var<workgroup> wg_cells: array<f32, WIDTH * HEIGHT>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn blur_tiled(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = workgroup_index(group);
    if tile >= params.tiles { return; }
    let row = tile / params.tiles_x;
    let origin = vec3(vec2(tile % params.tiles_x, row % params.tiles_y) * TILE, row / params.tiles_y);
    for (var i = lane; i < WIDTH * HEIGHT; i += WORKGROUP_SIZE) {
        let e = i32(origin.x + i % WIDTH) - i32(HALO);
        // Above the image this wraps to below it.
        let y = origin.y + i / WIDTH - RADIUS;
        var value = 0.0;
        if e >= 0 && e < i32(params.w) && y < params.h {
            value = load((origin.z * params.h + y) * params.w + u32(e));
        }
        wg_cells[i] = value;
    }
    workgroupBarrier();

    let local = vec2(lane % (TILE / PACK) * PACK, lane / (TILE / PACK));
    let p = origin + vec3(local, 0u);
    if p.x < params.w && p.y < params.h {
        var total = Total();
        for (var j = 0u; j <= 2u * RADIUS; j++) {
            var sum = vec4<f32>();
            for (var tap = 0u; tap <= 2u * RADIUS; tap++) {
                let first = (local.y + j) * WIDTH + local.x + tap * STEP;
                sum += vec4(wg_cells[first], wg_cells[first + 1u], wg_cells[first + 2u], wg_cells[first + 3u]);
            }
            total += Total(sum);
        }
        put_group(p, mean(p, total));
    }
}
