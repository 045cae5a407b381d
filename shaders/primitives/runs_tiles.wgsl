// Runs reduced at the speed of memory: a scan as in scan_tiles, whose items count the heads of runs on their
// way. An invocation holds QUADS vec4 of values and labels (keys, or flags) in registers; who meets the head of
// a run writes the total of the run before to its place, and who holds the last element that of the last run.
// What lies before the tile comes from an earlier kernel (CARRIED) or from the tiles before it (LOOKBACK).
// TOTALS: only totals the tile, and reads no values before its last head.
#import primitives/scan_element
#import workgroup/index
#if SUBGROUPS
#import workgroup/scan_shuffle
#else
#import workgroup/scan_kogge_stone_double
#endif
#if LOOKBACK
#import primitives/scan_lookback
#endif
#import primitives/reduce_by_key as labels

const WORKGROUP_SIZE: u32 = 256u;
const QUADS: u32 = 1u;
const TILE_QUADS: u32 = WORKGROUP_SIZE * QUADS;

@group(0) @binding(1) var<storage, read> values: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> values_tail: array<u32>;
@group(0) @binding(3) var<storage, read> labels: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read> labels_tail: array<u32>;
#if TOTALS
@group(0) @binding(5) var<storage, read_write> totals: array<u32>;
#else
@group(0) @binding(5) var<storage, read_write> results: array<u32>;
@group(0) @binding(6) var<storage, read_write> count: array<u32>;
const CARRY_BINDING: u32 = 7u;
#if CARRIED
@group(0) @binding(CARRY_BINDING) var<storage, read> carries: array<u32>;
#endif
#endif

fn place(tile: u32, i: u32) -> u32 { return tile * TILE_QUADS + i; }

// Where word `w` lies among those of the tail; the last one for what is beyond the end.
fn tail(w: u32) -> u32 { return min(w, params.elements - 1u) - 4u * params.quads; }

fn load_values(q: u32) -> vec4<u32> {
    if q < params.quads {
        return values[q];
    }
    let w = 4u * q;
    return vec4<u32>(
        values_tail[tail(w)], values_tail[tail(w + 1u)], values_tail[tail(w + 2u)], values_tail[tail(w + 3u)],
    );
}

fn load_labels(q: u32) -> vec4<u32> {
    if q < params.quads {
        return labels[q];
    }
    let w = 4u * q;
    return vec4<u32>(
        labels_tail[tail(w)], labels_tail[tail(w + 1u)], labels_tail[tail(w + 2u)], labels_tail[tail(w + 3u)],
    );
}

// The last of quad `q`.
fn last_label(q: u32) -> u32 {
    if q < params.quads {
        return labels[q].w;
    }
    return labels_tail[tail(4u * q + 3u)];
}

// Of quad `q`: bit i is set where element i is there and begins a run. The first of all does.
fn heads_of(quad: vec4<u32>, q: u32) -> u32 {
    let there = min(max(params.elements, 4u * q) - 4u * q, 4u);
    return (head_bits(quad, q) | u32(q == 0u)) & ((1u << there) - 1u);
}

// What an invocation holds of a tile.
struct Tile {
    values: array<vec4<u32>, QUADS>,
    labels: array<vec4<u32>, QUADS>,
    heads: u32, // bit 4 i + j: element j of quad i begins a run
    begin: u32, // elements before this one are not loaded
}

// The invocation's quads are number first, first + step, ... of the tile; so that all loads are in flight
// together, they stand here one by one.
fn take_labels(tile: u32, first: u32, step: u32) -> Tile {
    var t: Tile;
    t.labels[0] = load_labels(place(tile, first));
    t.heads = heads_of(t.labels[0], place(tile, first));
#if QUADS_2
    t.labels[1] = load_labels(place(tile, first + step));
    t.heads |= heads_of(t.labels[1], place(tile, first + step)) << 4u;
#endif
#if QUADS_4
    t.labels[2] = load_labels(place(tile, first + 2u * step));
    t.heads |= heads_of(t.labels[2], place(tile, first + 2u * step)) << 8u;
    t.labels[3] = load_labels(place(tile, first + 3u * step));
    t.heads |= heads_of(t.labels[3], place(tile, first + 3u * step)) << 12u;
#endif
#if QUADS_8
    t.labels[4] = load_labels(place(tile, first + 4u * step));
    t.heads |= heads_of(t.labels[4], place(tile, first + 4u * step)) << 16u;
    t.labels[5] = load_labels(place(tile, first + 5u * step));
    t.heads |= heads_of(t.labels[5], place(tile, first + 5u * step)) << 20u;
    t.labels[6] = load_labels(place(tile, first + 6u * step));
    t.heads |= heads_of(t.labels[6], place(tile, first + 6u * step)) << 24u;
    t.labels[7] = load_labels(place(tile, first + 7u * step));
    t.heads |= heads_of(t.labels[7], place(tile, first + 7u * step)) << 28u;
#endif
    return t;
}

fn take_values_of(q: u32, begin: u32) -> vec4<u32> {
#if TOTALS
    if 4u * q + 4u <= begin {
        return vec4<u32>(0u);
    }
#endif
    return load_values(q);
}

fn take_values(t: ptr<function, Tile>, tile: u32, first: u32, step: u32) {
    (*t).values[0] = take_values_of(place(tile, first), (*t).begin);
#if QUADS_2
    (*t).values[1] = take_values_of(place(tile, first + step), (*t).begin);
#endif
#if QUADS_4
    (*t).values[2] = take_values_of(place(tile, first + 2u * step), (*t).begin);
    (*t).values[3] = take_values_of(place(tile, first + 3u * step), (*t).begin);
#endif
#if QUADS_8
    (*t).values[4] = take_values_of(place(tile, first + 4u * step), (*t).begin);
    (*t).values[5] = take_values_of(place(tile, first + 5u * step), (*t).begin);
    (*t).values[6] = take_values_of(place(tile, first + 6u * step), (*t).begin);
    (*t).values[7] = take_values_of(place(tile, first + 7u * step), (*t).begin);
#endif
}

#if TOTALS
var<workgroup> wg_last: atomic<u32>;

// One lane's last head, as an element of the array; 0 for none.
fn last_own_head(heads: u32, tile: u32, first: u32, step: u32) -> u32 {
    if heads == 0u {
        return 0u;
    }
    let bit = firstLeadingBit(heads);
    return 4u * place(tile, first + (bit / 4u) * step) + bit % 4u;
}
#endif

fn heads_of_quad(heads: u32, i: u32) -> u32 { return (heads >> (4u * i)) & 15u; }

// The total of quad `q`, which is `words`.
fn fold_quad(words: vec4<u32>, heads: u32, q: u32, loaded_from: u32) -> Item {
#if TOTALS
    if 4u * q + 4u <= loaded_from {
        return Item(op_identity(), countOneBits(heads));
    }
#endif
    let marks = Marks(heads, 0u);
    var total = element(words.x, 0u, 0u, marks);
    total = fold_word(total, words.y, 1u, marks);
    total = fold_word(total, words.z, 2u, marks);
    return fold_word(total, words.w, 3u, marks);
}

// Joins a quad's total to the run: of the subgroup, or of the invocation alone. What lay before it there.
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

// What lies before each of the invocation's quads, in the run; the run is their total.
fn scan_quads(
    run: ptr<function, Item>,
    t: Tile,
    tile: u32,
    first: u32,
    step: u32,
    sub_lane: u32,
    sub_size: u32,
) -> array<Item, QUADS> {
    var before: array<Item, QUADS>;
    before[0] = advance(
        run, fold_quad(t.values[0], heads_of_quad(t.heads, 0u), place(tile, first), t.begin), sub_lane, sub_size,
    );
#if QUADS_2
    before[1] = advance(
        run, fold_quad(t.values[1], heads_of_quad(t.heads, 1u), place(tile, first + step), t.begin), sub_lane, sub_size,
    );
#endif
#if QUADS_4
    before[2] = advance(
        run, fold_quad(t.values[2], heads_of_quad(t.heads, 2u), place(tile, first + 2u * step), t.begin), sub_lane, sub_size,
    );
    before[3] = advance(
        run, fold_quad(t.values[3], heads_of_quad(t.heads, 3u), place(tile, first + 3u * step), t.begin), sub_lane, sub_size,
    );
#endif
#if QUADS_8
    before[4] = advance(
        run, fold_quad(t.values[4], heads_of_quad(t.heads, 4u), place(tile, first + 4u * step), t.begin), sub_lane, sub_size,
    );
    before[5] = advance(
        run, fold_quad(t.values[5], heads_of_quad(t.heads, 5u), place(tile, first + 5u * step), t.begin), sub_lane, sub_size,
    );
    before[6] = advance(
        run, fold_quad(t.values[6], heads_of_quad(t.heads, 6u), place(tile, first + 6u * step), t.begin), sub_lane, sub_size,
    );
    before[7] = advance(
        run, fold_quad(t.values[7], heads_of_quad(t.heads, 7u), place(tile, first + 7u * step), t.begin), sub_lane, sub_size,
    );
#endif
    return before;
}

#if LOOKBACK
// The workgroup's total of any tile. Not unrolled, since it is rarely wanted and would take registers from the rest.
#if SUBGROUPS
fn total_of_tile(tile: u32, sub_lane: u32, sub_size: u32, sub_id: u32, sub_count: u32) -> Item {
    let first = sub_id * sub_size * QUADS + sub_lane;
#else
fn total_of_tile(tile: u32, lane: u32) -> Item {
    let first = lane * QUADS;
    let sub_lane = lane;
    let sub_size = 1u;
#endif
    var run = nothing();
    let quads = select(QUADS, 0u, params.tiles == 0u);
    for (var i = 0u; i < quads; i++) {
        let q = place(tile, first + i * sub_size);
        _ = advance(&run, fold_quad(load_values(q), heads_of(load_labels(q), q), q, 0u), sub_lane, sub_size);
    }
#if SUBGROUPS
    return join_subgroups(run, sub_lane, sub_size, sub_id, sub_count).all;
#else
    return workgroup_scan(run, lane).all;
#endif
}
#endif

#if !TOTALS
fn emit_total(run: Item) {
    let total = finish(run.value);
    results[run.head - 1u] = encode(total, total);
}

// Element `at`, which `run` has come to.
fn emit(run: ptr<function, Item>, word: u32, label: u32, head: u32, at: u32) {
    if head != 0u {
        if at > 0u {
            emit_total(*run);
        }
        emit_label((*run).head, label);
    }
    *run = join(*run, Item(lift(decode(word, 0u), 0u), head));
    if at + 1u == params.elements {
        emit_total(*run);
        count[0] = (*run).head;
    }
}

fn emit_quad(base: Item, before: Item, words: vec4<u32>, labels: vec4<u32>, heads: u32, q: u32) {
    var run = join(base, before);
    emit(&run, words.x, labels.x, heads & 1u, 4u * q);
    emit(&run, words.y, labels.y, (heads >> 1u) & 1u, 4u * q + 1u);
    emit(&run, words.z, labels.z, (heads >> 2u) & 1u, 4u * q + 2u);
    emit(&run, words.w, labels.w, (heads >> 3u) & 1u, 4u * q + 3u);
}
#endif

#if TICKET
var<workgroup> wg_ticket: u32;
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
#if TOTALS
fn total_tiles(
#else
fn reduce_tiles(
#endif
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) index: u32,
#if SUBGROUPS
    @builtin(subgroup_invocation_id) sub_lane: u32,
    @builtin(subgroup_size) sub_size: u32,
    @builtin(subgroup_id) sub_id: u32,
    @builtin(num_subgroups) sub_count: u32,
#endif
) {
    var tile = workgroup_index(group);
    if tile >= params.tiles {
        return;
    }
#if TICKET
    // In the order in which workgroups begin, which need not be that of their ids.
    if index == 0u {
        wg_ticket = take_ticket();
    }
    tile = workgroupUniformLoad(&wg_ticket);
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
    var t = take_labels(tile, first, step);
#if TOTALS
    if lane == 0u {
        atomicStore(&wg_last, 0u);
    }
    workgroupBarrier();
    let own = last_own_head(t.heads, tile, first, step);
#if SUBGROUPS
    let last = subgroupMax(own);
    if sub_lane == 0u {
        atomicMax(&wg_last, last);
    }
#else
    atomicMax(&wg_last, own);
#endif
    workgroupBarrier();
    t.begin = atomicLoad(&wg_last);
#endif
    take_values(&t, tile, first, step);
    var run = nothing();
    let before = scan_quads(&run, t, tile, first, step, sub_lane, sub_size);
#if SUBGROUPS
    let span = join_subgroups(run, sub_lane, sub_size, sub_id, sub_count);
#else
    let span = workgroup_scan(run, lane);
#endif
#if TOTALS
    if lane == 0u {
        totals[2u * tile] = bitcast<u32>(span.all.value);
        totals[2u * tile + 1u] = span.all.head;
    }
#else
    var base = span.before;
#if CARRIED
    base = join(Item(bitcast<Acc>(carries[2u * tile]), carries[2u * tile + 1u]), base);
#endif
#if LOOKBACK
#if SUBGROUPS
    base = join(look_back(tile, span.all, sub_lane, sub_size, sub_id, sub_count), base);
#else
    base = join(look_back(tile, span.all, lane), base);
#endif
#endif
    emit_quad(base, before[0], t.values[0], t.labels[0], heads_of_quad(t.heads, 0u), place(tile, first));
#if QUADS_2
    emit_quad(base, before[1], t.values[1], t.labels[1], heads_of_quad(t.heads, 1u), place(tile, first + step));
#endif
#if QUADS_4
    emit_quad(base, before[2], t.values[2], t.labels[2], heads_of_quad(t.heads, 2u), place(tile, first + 2u * step));
    emit_quad(base, before[3], t.values[3], t.labels[3], heads_of_quad(t.heads, 3u), place(tile, first + 3u * step));
#endif
#if QUADS_8
    emit_quad(base, before[4], t.values[4], t.labels[4], heads_of_quad(t.heads, 4u), place(tile, first + 4u * step));
    emit_quad(base, before[5], t.values[5], t.labels[5], heads_of_quad(t.heads, 5u), place(tile, first + 5u * step));
    emit_quad(base, before[6], t.values[6], t.labels[6], heads_of_quad(t.heads, 6u), place(tile, first + 6u * step));
    emit_quad(base, before[7], t.values[7], t.labels[7], heads_of_quad(t.heads, 7u), place(tile, first + 7u * step));
#endif
#endif
}
