// Scan at the speed of memory: one thread holds VEC4S vec4 of a tile in registers, and joins them by subgroup shuffles
// (or in workgroup memory) with the prefix of the tile: nothing; with CARRIED from an earlier kernel; with LOOKBACK
// from earlier tiles. REDUCE only totals the tile.
// With RUNS a tile belongs to one thread, which walks it without a barrier: for devices whose cores run the threads of
// a workgroup one after the other.
// Lanes of a subgroup load neighbours. Elements over more than a word come as units of one vector: scan_states.
#import primitives/scan_advance
#import primitives/scan_words as unit

#if REDUCE
@group(0) @binding(3) var<storage, read_write> totals: array<Item>;
#endif
#if CARRIED
const CARRY_BINDING: u32 = 5u;
@group(0) @binding(CARRY_BINDING) var<storage, read> carries: array<Item>;
#endif

// Where vec4 `i` of the tile lies.
fn place(tile: u32, i: u32) -> u32 {
#if REVERSE
    return (params.tiles - tile) * TILE_VEC4S - 1u - i;
#else
    return tile * TILE_VEC4S + i;
#endif
}

// Whether all of the tile lies in whole vec4.
fn is_full(tile: u32) -> bool {
#if REVERSE
    return (params.tiles - tile) * TILE_VEC4S <= params.vec4s;
#else
    return (tile + 1u) * TILE_VEC4S <= params.vec4s;
#endif
}

#if RUNS
// Walks vec4 `from` to `end` of the tile of a thread, behind `base`.
#block walk(from, end, load, full)
    for (var i = {from}; i < {end}; i++) {
        let q = place(tile, i);
        let loaded = {load}(q);
#if !REDUCE
        emit_vec4(base, nothing(), loaded, q, {full});
#endif
        base = join(base, fold_vec4(loaded, q));
    }
#end
#else
#put load_vec4s(load_tile, load_vec4, load_any)

fn totals_of(loaded: array<Loaded, VEC4S>, tile: u32, first: u32, step: u32) -> array<Item, VEC4S> {
    return array<Item, VEC4S>(
#for i in VEC4S
        fold_vec4(loaded[{i}], place(tile, first + {i}u * step)),
#end
    );
}
#endif

// SEGMENTED, two copies are faster than a condition at each vec4; else they are slower.
#block emit_tile(full)
#for i in VEC4S
    emit_vec4(base, before[{i}], loaded[{i}], place(tile, first + {i}u * step), {full});
#end
#end

#if LOOKBACK
#put total_of_tile(let loaded = load_any(q);, fold_vec4(loaded, q))
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
#if REDUCE
fn scan_tiles_reduce(
#else
fn scan_tiles(
#endif
#put thread_builtins(index, SUBGROUPS)
) {
#if RUNS
    let tile = workgroup_index(group) * WORKGROUP_SIZE + index;
    if tile >= params.tiles { return; }
#else
#put tile_and_lane()
#endif
#if LIMITED
#if !REVERSE
    // No tile waits for one behind the end.
#if STATE
    if tile * TILE_VEC4S * UNIT >= extent() { return; }
#else
    if tile * TILE_VEC4S * VEC4_ITEMS >= extent() { return; }
#endif
#endif
#endif
#if RUNS
    var base = nothing();
#if CARRIED
    base = item(value_of(carries[params.first_tile + tile]), false);
#endif
    let whole = select(0u, TILE_VEC4S, is_full(tile));
#put walk(0u, whole, load_vec4, true)
#put walk(whole, TILE_VEC4S, load_any, false)
#if REDUCE
    totals[params.first_tile + tile] = base;
#endif
#else
    let loaded = load_tile(tile, first, step);
    var run = nothing();
#if SUBGROUPS && !SEGMENTED && !STATE
    var before: array<Item, VEC4S>;
#for i in VEC4S
    before[{i}] = advance(&run, fold_vec4(loaded[{i}], place(tile, first + {i}u * step)), sub_lane, sub_size);
#end
#else
    let before = advance_all(&run, totals_of(loaded, tile, first, step), sub_lane, sub_size);
#endif
#put join_tile()
#if REDUCE
#put store_total()
#else
    var base = span.before;
#if CARRIED
    base = join(item(value_of(carries[params.first_tile + tile]), false), base);
#endif
#if LOOKBACK
#put carry_of_tiles()
    base = join(item(carry, false), base);
#endif
    let full = is_full(tile);
#if SEGMENTED && !STATE
    if full {
#put emit_tile(true)
        return;
    }
#endif
#put emit_tile(full)
#endif
#endif
}
