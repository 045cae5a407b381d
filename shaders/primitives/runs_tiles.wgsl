// Reduction of runs at the speed of memory: a scan as in scan_tiles, whose items also count heads. One thread holds
// QUADS vec4 of values and labels (keys or flags) in registers. The thread with the head of a run writes the total of
// the run before it, and the thread with the last element that of the last run.
// The prefix of the tile comes from an earlier kernel (CARRIED) or from earlier tiles (LOOKBACK).
// TOTALS: only totals the tile, and reads no values before its last head.
#import primitives/scan_advance
#import primitives/reduce_by_key as labels


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

// Whether all of the tile lies in whole vec4. The last element never does.
fn is_full(tile: u32) -> bool { return (tile + 1u) * TILE_QUADS <= params.quads; }

// What a thread holds: elements, and which of them begin a run (bit i: element i).
struct Quad { values: vec4<u32>, labels: vec4<u32>, heads: u32 }

// A whole vec4, without its values. The first element of all begins a run.
fn take_labels(q: u32) -> Quad {
    let quad = labels[q];
    return Quad(vec4<u32>(0u), quad, head_bits(quad, labels[max(q, 1u) - 1u].w) | u32(q == 0u));
}

// Where word `w` lies among those of the tail; the last one for what is beyond the end.
fn tail(w: u32) -> u32 { return min(w, params.elements - 1u) - 4u * params.quads; }

// The same of any vec4: what is beyond the end begins no run.
fn take_any_labels(q: u32) -> Quad {
    if q < params.quads { return take_labels(q); }
    let w = 4u * q;
    let quad = vec4<u32>(
        labels_tail[tail(w)], labels_tail[tail(w + 1u)], labels_tail[tail(w + 2u)], labels_tail[tail(w + 3u)],
    );
    var before = 0u;
    if q > params.quads {
        before = labels_tail[tail(w - 1u)];
    } else if q > 0u {
        before = labels[q - 1u].w;
    }
    let there = min(max(params.elements, w) - w, 4u);
    let heads = (head_bits(quad, before) | u32(q == 0u)) & ((1u << there) - 1u);
    return Quad(vec4<u32>(0u), quad, heads);
}

fn any_values(q: u32) -> vec4<u32> {
    if q < params.quads { return values[q]; }
    let w = 4u * q;
    return vec4<u32>(
        values_tail[tail(w)], values_tail[tail(w + 1u)], values_tail[tail(w + 2u)], values_tail[tail(w + 3u)],
    );
}

#put load_quads(load_labels, take_labels, take_any_labels)

#if TOTALS
// The values of the vec4 that do not end before element `begin`.
fn load_values(quads: ptr<function, array<Quad, QUADS>>, tile: u32, first: u32, step: u32, begin: u32) {
#for i in QUADS
    (*quads)[{i}].values = late_values(place(tile, first + {i}u * step), begin);
#end
}

fn late_values(q: u32, begin: u32) -> vec4<u32> {
    if 4u * q + 4u <= begin { return vec4<u32>(0u); }
    return any_values(q);
}

var<workgroup> wg_last: atomic<u32>;

// A vec4's last head, as an element of the array; 0 for none.
fn last_head(quad: Quad, q: u32) -> u32 { return select(4u * q + firstLeadingBit(quad.heads), 0u, quad.heads == 0u); }

fn last_own_head(quads: array<Quad, QUADS>, tile: u32, first: u32, step: u32) -> u32 {
    var last = 0u;
#for i in QUADS
    last = max(last, last_head(quads[{i}], place(tile, first + {i}u * step)));
#end
    return last;
}
#else
fn load_values(quads: ptr<function, array<Quad, QUADS>>, tile: u32, first: u32, step: u32) {
    if is_full(tile) {
#for i in QUADS
        (*quads)[{i}].values = values[place(tile, first + {i}u * step)];
#end
        return;
    }
#for i in QUADS
    (*quads)[{i}].values = any_values(place(tile, first + {i}u * step));
#end
}
#endif

// The total of vec4 `q`; of elements before `begin` only the heads count.
fn fold_quad(quad: Quad, q: u32, begin: u32) -> Item {
#if TOTALS
    if 4u * q + 4u <= begin { return Item(op_identity(), countOneBits(quad.heads)); }
#endif
    let marks = Marks(quad.heads, 0u);
    var total = element(quad.values.x, 0u, 0u, marks);
    total = fold_word(total, quad.values.y, 1u, marks);
    total = fold_word(total, quad.values.z, 2u, marks);
    return fold_word(total, quad.values.w, 3u, marks);
}

// What lies before each of the thread's vec4, in the run; the run is their total.
fn scan_quads(
    run: ptr<function, Item>, quads: array<Quad, QUADS>, tile: u32, first: u32, step: u32, begin: u32,
    sub_lane: u32, sub_size: u32,
) -> array<Item, QUADS> {
    var before: array<Item, QUADS>;
#for i in QUADS
    before[{i}] = advance(run, fold_quad(quads[{i}], place(tile, first + {i}u * step), begin), sub_lane, sub_size);
#end
    return before;
}

#if LOOKBACK
#put total_of_tile(var quad = take_any_labels(q); quad.values = any_values(q);, fold_quad(quad, q, 0u))
#endif

#if !TOTALS
fn emit_total(run: Item) {
    let total = finish(run.value);
    results[run.head - 1u] = encode(total, total);
}

// Element `at`, which `run` has come to.
fn emit(run: ptr<function, Item>, word: u32, label: u32, head: u32, at: u32, full: bool) {
    if head != 0u {
        if at > 0u { emit_total(*run); }
        emit_label((*run).head, label);
    }
    *run = join(*run, Item(lift(decode(word, 0u), 0u), head));
    if !full && at + 1u == params.elements {
        emit_total(*run);
        count[0] = (*run).head;
    }
}

fn emit_quad(base: Item, before: Item, quad: Quad, q: u32, full: bool) {
    var run = join(base, before);
    emit(&run, quad.values.x, quad.labels.x, quad.heads & 1u, 4u * q, full);
    emit(&run, quad.values.y, quad.labels.y, (quad.heads >> 1u) & 1u, 4u * q + 1u, full);
    emit(&run, quad.values.z, quad.labels.z, (quad.heads >> 2u) & 1u, 4u * q + 2u, full);
    emit(&run, quad.values.w, quad.labels.w, (quad.heads >> 3u) & 1u, 4u * q + 3u, full);
}
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
#if TOTALS
fn runs_tiles_total(
#else
fn runs_tiles_reduce(
#endif
#put thread_builtins(index, SUBGROUPS)
) {
#put tile_and_lane()
    var quads = load_labels(tile, first, step);
#if TOTALS
    if lane == 0u { atomicStore(&wg_last, 0u); }
    workgroupBarrier();
    let own = last_own_head(quads, tile, first, step);
#if SUBGROUPS
    let last = subgroupMax(own);
    if sub_lane == 0u { atomicMax(&wg_last, last); }
#else
    atomicMax(&wg_last, own);
#endif
    workgroupBarrier();
    let begin = atomicLoad(&wg_last);
    load_values(&quads, tile, first, step, begin);
#else
    let begin = 0u;
    load_values(&quads, tile, first, step);
#endif
    var run = nothing();
    let before = scan_quads(&run, quads, tile, first, step, begin, sub_lane, sub_size);
#put join_tile()
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
#put carry_of_tiles()
    base = join(carry, base);
#endif
    let full = is_full(tile);
#for i in QUADS
    emit_quad(base, before[{i}], quads[{i}], place(tile, first + {i}u * step), full);
#end
#endif
}
