// What scan_tiles and runs_tiles share, whose threads hold VEC4S vec4 of a tile. The importer has Loaded, a vec4 with
// what is known of it; fold_vec4, its total; place, where vec4 `i` of a tile lies; and is_full.
//
//     #put tile_and_lane()    in an entry point: the `tile`, the `lane`, its `first` vec4, and the `step` to the next
//     fn advance              what lies before a vec4 in the `run`, which its total joins; advance_all, before each of
//                             the thread's, unless items are one word without heads
//     #put join_tile()        there: `span`, what lies before the thread's `run` in the tile, and the tile's total
//     #put carry_of_tiles()   there, with LOOKBACK: `carry`, what lies before the tile
#import primitives/scan_element
#import workgroup/index
#if SUBGROUPS
#import workgroup/scan_shuffle
#if STATE || COUNTED
#import primitives/scan_climb
#endif
#if SEGMENTED && !STATE && !COUNTED
#import primitives/scan_reach
#endif
#else
#import workgroup/scan_kogge_stone_double
#endif
#if LOOKBACK
#import primitives/scan_lookback
#endif

const WORKGROUP_SIZE: u32 = 256u;
const VEC4S: u32 = 1u;
#if RUNS
const TILE_VEC4S: u32 = VEC4S;
#else
const TILE_VEC4S: u32 = WORKGROUP_SIZE * VEC4S;
#endif

#block tile_and_lane()
    var tile = workgroup_index(group);
    if tile >= params.tiles { return; }
#if TICKET
    tile = next_tile(index);
#endif
#if SUBGROUPS
    let lane = sub_id * sub_size + sub_lane;
    let first = sub_id * sub_size * VEC4S + sub_lane;
    let step = sub_size;
#else
    let lane = index;
    let first = lane * VEC4S;
    let step = 1u;
    let sub_lane = lane;
    let sub_size = 1u;
#endif
#end

#block join_tile()
#if SUBGROUPS
    let span = join_subgroups(run, sub_lane, sub_size, sub_id, sub_count);
#else
    let span = workgroup_scan(run, lane);
#endif
#end

#block carry_of_tiles()
#if SUBGROUPS
    let carry = look_back(tile, span.all, sub_lane, sub_size, sub_id, sub_count);
#else
    let carry = look_back(tile, span.all, lane);
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

#if !SUBGROUPS && !RUNS
fn advance_all(run: ptr<function, Item>, totals: array<Item, VEC4S>, lane: u32, size: u32) -> array<Item, VEC4S> {
    var before: array<Item, VEC4S>;
#for i in VEC4S
    before[{i}] = advance(run, totals[{i}], lane, size);
#end
    return before;
}
#endif

// The function `name` that loads the thread's vec4. So that all loads are in flight together, they stand there one by
// one, without a condition where the tile is full.
#block load_vec4s(name, whole, any)
fn {name}(tile: u32, first: u32, step: u32) -> array<Loaded, VEC4S> {
    var loaded: array<Loaded, VEC4S>;
    if is_full(tile) {
#for i in VEC4S
        loaded[{i}] = {whole}(place(tile, first + {i}u * step));
#end
        return loaded;
    }
#for i in VEC4S
    loaded[{i}] = {any}(place(tile, first + {i}u * step));
#end
    return loaded;
}
#end

// The workgroup's total of any tile, of which `load` loads vec4 `q` as `loaded`, whose total is `fold`. Not unrolled,
// since it is rarely wanted and would take registers from the rest.
#block total_of_tile(load, fold)
#if SUBGROUPS
fn total_of_tile(tile: u32, sub_lane: u32, sub_size: u32, sub_id: u32, sub_count: u32) -> Item {
    let first = sub_id * sub_size * VEC4S + sub_lane;
#else
fn total_of_tile(tile: u32, lane: u32) -> Item {
    let first = lane * VEC4S;
    let sub_lane = lane;
    let sub_size = 1u;
#endif
    var run = nothing();
    let count = select(VEC4S, 0u, params.tiles == 0u);
    for (var i = 0u; i < count; i++) {
        let q = place(tile, first + i * sub_size);
        {load}
        _ = advance(&run, {fold}, sub_lane, sub_size);
    }
#put join_tile()
    return span.all;
}
#end
