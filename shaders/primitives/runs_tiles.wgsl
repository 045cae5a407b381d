// Reduction of runs at the speed of memory: a scan as in scan_tiles, whose items also count heads. One thread holds
// VEC4S vec4 of values and labels (keys or flags) in registers. The thread with the head of a run writes the total of
// the run before it, and the thread with the last element that of the last run.
// The prefix of the tile comes from an earlier kernel (CARRIED) or from earlier tiles (LOOKBACK).
// TOTALS: only totals the tile, and reads no values before its last head.
#import primitives/scan_advance
#import primitives/reduce_by_key as labels

@group(0) @binding(1) var<storage, read> values: array<vec4<u32>>;
#if LIMITED
// Of the labels, 64 words, then of the values; the length has the place of one of them (LENGTH_BINDING).
@group(0) @binding(2) var<storage, read> tails: array<u32>;
#else
@group(0) @binding(2) var<storage, read> values_tail: array<u32>;
@group(0) @binding(4) var<storage, read> labels_tail: array<u32>;
#endif
@group(0) @binding(3) var<storage, read> labels: array<vec4<u32>>;
#if TOTALS
@group(0) @binding(5) var<storage, read_write> totals: array<Item>;
#else
@group(0) @binding(5) var<storage, read_write> results: array<u32>;
@group(0) @binding(6) var<storage, read_write> count: array<u32>;
const CARRY_BINDING: u32 = 7u;
#if CARRIED
@group(0) @binding(CARRY_BINDING) var<storage, read> carries: array<Item>;
#endif
#endif

fn place(tile: u32, i: u32) -> u32 { return tile * TILE_VEC4S + i; }

// Whether all of the tile lies in whole vec4, and before the last element.
#if LIMITED
fn is_full(tile: u32) -> bool {
    return (tile + 1u) * TILE_VEC4S <= min(params.vec4s, (max(extent(), 1u) - 1u) / 4u);
}
#else
fn is_full(tile: u32) -> bool { return (tile + 1u) * TILE_VEC4S <= params.vec4s; }
#endif

// Of the elements of vec4 `q`: bit i is set where element i is there.
fn there(q: u32) -> u32 { return (1u << min(max(extent(), 4u * q) - 4u * q, 4u)) - 1u; }

// The words of four values.
#if STATE
alias Values = array<vec4<u32>, IN_WORDS>;
#else
alias Values = vec4<u32>;
#endif

// What a thread holds: elements, and which of them begin a run (bit i: element i).
struct Loaded { values: Values, labels: vec4<u32>, heads: u32 }

// A whole vec4, without its values. The first element of all begins a run.
fn take_labels(q: u32) -> Loaded {
    let x = labels[q];
    return Loaded(Values(), x, head_bits(x, labels[max(q, 1u) - 1u].w) | u32(q == 0u));
}

// Word `w` of an array, which lies in its tail; the last one for what is beyond the end.
fn tail_label(w: u32) -> u32 {
    let at = min(w, params.elements - 1u) - 4u * params.vec4s;
#if LIMITED
    return tails[at];
#else
    return labels_tail[at];
#endif
}

#if STATE
const VALUE_WORDS: u32 = IN_WORDS;
#else
const VALUE_WORDS: u32 = 1u;
#endif

fn tail_value(w: u32) -> u32 {
    let at = min(w, VALUE_WORDS * params.elements - 1u) - 4u * VALUE_WORDS * params.vec4s;
#if LIMITED
    return tails[64u + at];
#else
    return values_tail[at];
#endif
}

// The same of any vec4: what is beyond the end begins no run.
fn take_any_labels(q: u32) -> Loaded {
#if LIMITED
    if q < params.vec4s {
        let loaded = take_labels(q);
        return Loaded(loaded.values, loaded.labels, loaded.heads & there(q));
    }
#else
    if q < params.vec4s { return take_labels(q); }
#endif
    let w = 4u * q;
    let x = vec4<u32>(
        tail_label(w), tail_label(w + 1u), tail_label(w + 2u), tail_label(w + 3u),
    );
    var before = 0u;
    if q > params.vec4s {
        before = tail_label(w - 1u);
    } else if q > 0u {
        before = labels[q - 1u].w;
    }
    return Loaded(Values(), x, (head_bits(x, before) | u32(q == 0u)) & there(q));
}

#if STATE
fn whole_values(q: u32) -> Values {
    return Values(
#for k in IN_WORDS
        values[IN_WORDS * q + {k}u],
#end
    );
}

fn any_values(q: u32) -> Values {
    if q < params.vec4s { return whole_values(q); }
    let w = 4u * IN_WORDS * q;
    return Values(
#for k in IN_WORDS
        vec4<u32>(
#for i in 4
            tail_value(w + {4 * k + i}u),
#end
        ),
#end
    );
}

fn lifted(values: Values) -> array<Acc, 4> {
    return array<Acc, 4>(
#for i in 4
        pack(state_of(
#for k in IN_WORDS
            decode(values[{(IN_WORDS * i + k) / 4}][{(IN_WORDS * i + k) % 4}], 0u),
#end
        )),
#end
    );
}
#else
fn any_values(q: u32) -> Values {
    if q < params.vec4s { return values[q]; }
    let w = 4u * q;
    return vec4<u32>(tail_value(w), tail_value(w + 1u), tail_value(w + 2u), tail_value(w + 3u));
}

#endif

#put load_vec4s(load_labels, take_labels, take_any_labels)

#if TOTALS
// The values of the vec4 that do not end before element `begin`.
fn load_values(loaded: ptr<function, array<Loaded, VEC4S>>, tile: u32, first: u32, step: u32, begin: u32) {
#for i in VEC4S
    (*loaded)[{i}].values = late_values(place(tile, first + {i}u * step), begin);
#end
}

fn late_values(q: u32, begin: u32) -> Values {
    if 4u * q + 4u <= begin { return Values(); }
    return any_values(q);
}

var<workgroup> wg_last: atomic<u32>;

// A vec4's last head, as an element of the array; 0 for none.
fn last_head(x: Loaded, q: u32) -> u32 { return select(4u * q + firstLeadingBit(x.heads), 0u, x.heads == 0u); }

fn last_own_head(loaded: array<Loaded, VEC4S>, tile: u32, first: u32, step: u32) -> u32 {
    var last = 0u;
#for i in VEC4S
    last = max(last, last_head(loaded[{i}], place(tile, first + {i}u * step)));
#end
    return last;
}
#else
fn load_values(loaded: ptr<function, array<Loaded, VEC4S>>, tile: u32, first: u32, step: u32) {
    if is_full(tile) {
#for i in VEC4S
#if STATE
        (*loaded)[{i}].values = whole_values(place(tile, first + {i}u * step));
#else
        (*loaded)[{i}].values = values[place(tile, first + {i}u * step)];
#endif
#end
        return;
    }
#for i in VEC4S
    (*loaded)[{i}].values = any_values(place(tile, first + {i}u * step));
#end
}
#endif

// The total of vec4 `q`; of elements before `begin` only the heads count.
fn fold_vec4(loaded: Loaded, q: u32, begin: u32) -> Item {
#if TOTALS
    if 4u * q + 4u <= begin { return Item(op_identity(), countOneBits(loaded.heads)); }
#endif
#if STATE
    let x = lifted(loaded.values);
    var total = Item(x[0], loaded.heads & 1u);
#for i in 1..4
    total = join(total, Item(x[{i}], (loaded.heads >> {i}u) & 1u));
#end
    return total;
#else
    let marks = Marks(loaded.heads, 0u);
    var total = element(loaded.values.x, 0u, 0u, marks);
    total = fold_word(total, loaded.values.y, 1u, marks);
    total = fold_word(total, loaded.values.z, 2u, marks);
    return fold_word(total, loaded.values.w, 3u, marks);
#endif
}

fn totals_of(loaded: array<Loaded, VEC4S>, tile: u32, first: u32, step: u32, begin: u32) -> array<Item, VEC4S> {
    return array<Item, VEC4S>(
#for i in VEC4S
        fold_vec4(loaded[{i}], place(tile, first + {i}u * step), begin),
#end
    );
}

#if LOOKBACK
#put total_of_tile(var loaded = take_any_labels(q); loaded.values = any_values(q);, fold_vec4(loaded, q, 0u))
#endif

#if !TOTALS
fn emit_total(run: Item) {
    let total = finish(run.value);
#if STATE
#for k in OUT_WORDS
    results[OUT_WORDS * (run.head - 1u) + {k}u] = total[{k}];
#end
#else
    results[run.head - 1u] = encode(total, total);
#endif
}

// Element `at`, which `run` has come to.
#if STATE
alias Emitted = Acc;
#else
alias Emitted = u32;
#endif
fn emit(run: ptr<function, Item>, x: Emitted, label: u32, head: u32, at: u32, full: bool) {
    if head != 0u {
        if at > 0u { emit_total(*run); }
        emit_label((*run).head, label);
    }
#if STATE
    *run = join(*run, Item(x, head));
#else
    *run = join(*run, Item(lift(decode(x, 0u), 0u), head));
#endif
    if !full && at + 1u == extent() {
        emit_total(*run);
        count[0] = (*run).head;
    }
}

fn emit_vec4(base: Item, before: Item, loaded: Loaded, q: u32, full: bool) {
    var run = join(base, before);
#if STATE
    let x = lifted(loaded.values);
#else
    let x = loaded.values;
#endif
#for i in 4
    emit(&run, x[{i}], loaded.labels[{i}], (loaded.heads >> {i}u) & 1u, 4u * q + {i}u, full);
#end
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
#if LIMITED
#if !TOTALS
    if tile == 0u && lane == 0u && extent() == 0u { count[0] = 0u; }
#endif
    // No tile waits for one behind the end.
    if 4u * tile * TILE_VEC4S >= extent() { return; }
#endif
    var loaded = load_labels(tile, first, step);
#if TOTALS
    if lane == 0u { atomicStore(&wg_last, 0u); }
    workgroupBarrier();
    let own = last_own_head(loaded, tile, first, step);
#if SUBGROUPS
    let last = subgroupMax(own);
    if sub_lane == 0u { atomicMax(&wg_last, last); }
#else
    atomicMax(&wg_last, own);
#endif
    workgroupBarrier();
    let begin = atomicLoad(&wg_last);
    load_values(&loaded, tile, first, step, begin);
#else
    let begin = 0u;
    load_values(&loaded, tile, first, step);
#endif
    var run = nothing();
    let before = advance_all(&run, totals_of(loaded, tile, first, step, begin), sub_lane, sub_size);
#put join_tile()
#if TOTALS
    if lane == 0u { totals[tile] = span.all; }
#else
    var base = span.before;
#if CARRIED
    base = join(carries[tile], base);
#endif
#if LOOKBACK
#put carry_of_tiles()
    base = join(carry, base);
#endif
    let full = is_full(tile);
#for i in VEC4S
    emit_vec4(base, before[{i}], loaded[{i}], place(tile, first + {i}u * step), full);
#end
#endif
}
