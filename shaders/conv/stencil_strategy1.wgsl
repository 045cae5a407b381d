// A filter by tiles: a workgroup is as large as its tile of outputs (u8 and f16: a quarter). It loads the tile
// with its halo to workgroup memory, where some threads load more than once; then all compute.
#import conv/stencil_params
#import conv/filter2d_tile as tile
#import conv/stencil_floats as element
#import conv/stencil_at
#import conv/stencil_halo

const WORKGROUP_SIZE: u32 = TILE_X / PACK * TILE_Y * TILE_Z;

@compute @workgroup_size(WORKGROUP_SIZE)
fn stencil_strategy1(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = workgroup_index(group);
    if tile >= params.tiles { return; }
    let origin = tile_origin(tile);
    for (var i = lane; i < CELLS; i += WORKGROUP_SIZE) { load_cell(i, origin); }
    workgroupBarrier();

    let p = origin + cell(lane, TILE_X / PACK, TILE_Y) * vec3(PACK, 1u, 1u);
    if all(p < extents()) { emit(p); }
}
