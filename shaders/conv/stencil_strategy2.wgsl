// A filter by tiles: a workgroup is as large as its tile of inputs. Each thread loads one to workgroup memory;
// threads in the halo then idle (u8 and f16: and three of four others).
#import conv/stencil_params
#import conv/filter2d_tile as tile
#import conv/stencil_floats as element
#import conv/stencil_at
#import conv/stencil_halo

@compute @workgroup_size(CELLS)
fn stencil_strategy2(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = workgroup_index(group);
    if tile >= params.tiles { return; }
    let origin = tile_origin(tile);
    load_cell(lane, origin);
    workgroupBarrier();

    let local = cell(lane, IN_X, IN_Y);
    let p = origin + local;
    if all(local < vec3(TILE_X, TILE_Y, TILE_Z)) && local.x % PACK == 0u && all(p < extents()) { emit(p); }
}
