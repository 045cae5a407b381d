// What the scans of scan_tiles and runs_tiles share, whose threads hold QUADS parts of a tile.
//
//     #put tile_builtins()    the parameters of an entry point
//     #put tile_and_lane()    in its body: the `tile`, the `lane`, its parts number first, first + step, ... of the tile
#block tile_builtins()
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
#if SUBGROUPS
    @builtin(subgroup_invocation_id) sub_lane: u32,
    @builtin(subgroup_size) sub_size: u32,
    @builtin(subgroup_id) sub_id: u32,
    @builtin(num_subgroups) sub_count: u32,
#endif
#end

#block tile_and_lane()
    var tile = workgroup_index(group);
    if tile >= params.tiles { return; }
#if TICKET
    tile = next_tile(index);
#endif
#if SUBGROUPS
    let lane = sub_id * sub_size + sub_lane;
    let first = sub_id * sub_size * QUADS + sub_lane;
    let step = sub_size;
#else
    let lane = index;
    let first = lane * QUADS;
    let step = 1u;
    let sub_lane = lane;
    let sub_size = 1u;
#endif
#end

// Joins a vec4's total to the run: of the subgroup, or of the thread alone. What lay before it there.
fn advance(run: ptr<function, Item>, x: Item, sub_lane: u32, sub_size: u32) -> Item {
#if SUBGROUPS
    let scanned = subgroup_scan(x, sub_lane, sub_size);
    let before = join(*run, subgroup_before(scanned, sub_lane));
    *run = join(*run, item_of_lane(scanned, sub_size - 1u));
#else
    let before = *run;
    *run = join(before, x);
#endif
    return before;
}
