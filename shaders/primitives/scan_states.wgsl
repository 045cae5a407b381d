// Elements of IN_WORDS words with results of OUT_WORDS, for scan_tiles. In place of a vec4 a thread holds a unit of
// UNIT elements, as many as one vector of at most 4 words has, of input and of output: neighbouring lanes load and
// store neighbouring vectors. The last 64 units or less come as single words.
#if KEYS
#import primitives/differs
#endif

const UNIT: u32 = 2u;
alias In = vec2<u32>;
alias Out = vec4<u32>;

@group(0) @binding(1) var<storage, read> input: array<In>;
@group(0) @binding(2) var<storage, read> input_tail: array<u32>;
#if REDUCE
#if HEADS
@group(0) @binding(4) var<storage, read> heads: array<u32>;
#endif
#else
@group(0) @binding(3) var<storage, read_write> output: array<Out>;
@group(0) @binding(4) var<storage, read_write> output_tail: array<u32>;
#if HEADS
@group(0) @binding(5) var<storage, read> heads: array<u32>;
#endif
#endif

// What a thread holds: a unit's words, and which of its elements begin a segment, in the order of the scan.
struct Loaded { words: In, heads: u32 }

#if HEADS
// Whether element `e` begins a segment: by its flag or bit, or as its key is another than the one before.
fn begins(e: u32) -> bool {
#if KEYS
    return differs(heads[e], heads[max(e, 1u) - 1u]);
#else
#if BITS
    let at = params.first_element + e;
    return ((heads[at / 32u] >> (at % 32u)) & 1u) != 0u;
#else
    return heads[e] != 0u;
#endif
#endif
}
#endif

fn unit_heads(q: u32) -> u32 {
#if HEADS
    // The first of all elements begins a segment, whatever its flag.
    var bits = u32(q == 0u && params.first_element == 0u);
    for (var i = 0u; i < UNIT; i++) {
        bits |= u32(begins(min(UNIT * q + i, params.elements - 1u))) << i;
    }
    return bits;
#else
    return row_heads(UNIT * q, UNIT);
#endif
}

fn load_vec4(q: u32) -> Loaded { return Loaded(input[q], unit_heads(q)); }

// Word `w` of the array; the last one for what is beyond the end.
fn tail_word(w: u32) -> u32 {
    return input_tail[min(w, IN_WORDS * params.elements - 1u) - UNIT * IN_WORDS * params.vec4s];
}

// The same of any unit, whole or not.
fn load_any(q: u32) -> Loaded {
    if q < params.vec4s { return load_vec4(q); }
    let w = UNIT * IN_WORDS * q;
    let words = In(
#for k in UNIT * IN_WORDS
        tail_word(w + {k}u),
#end
    );
    return Loaded(words, unit_heads(q));
}

// The unit's elements in the order of the scan. Of those beyond the end only a scan from there takes notice.
fn items_of(loaded: Loaded, q: u32) -> array<Item, UNIT> {
    var items: array<Item, UNIT>;
    let skip = skipped(UNIT * q, UNIT);
#for i in UNIT
    var value_{i} = pack(state_of(
#for k in IN_WORDS
#if REVERSE
        decode(loaded.words[{(UNIT - 1 - i) * IN_WORDS + k}], 0u),
#else
        decode(loaded.words[{i * IN_WORDS + k}], 0u),
#endif
#end
    ));
    if {i}u < skip { value_{i} = op_identity(); }
    items[{i}] = item(value_{i}, ((loaded.heads >> {i}u) & 1u) != 0u);
#end
    return items;
}

fn fold_vec4(loaded: Loaded, q: u32) -> Item {
    let items = items_of(loaded, q);
    var total = items[0];
#for i in 1..UNIT
    total = join(total, items[{i}]);
#end
    return total;
}

#if !REDUCE
fn emit_vec4(base: Item, before: Item, loaded: Loaded, q: u32, full: bool) {
    var run = join(base, before);
    let items = items_of(loaded, q);
#for i in UNIT
    let result_{i} = finish(prefix(&run, items[{i}]));
#end
    let results = Out(
#for i in UNIT
#for k in OUT_WORDS
#if REVERSE
        result_{UNIT - 1 - i}[{k}],
#else
        result_{i}[{k}],
#endif
#end
#end
    );
    if full || q < params.vec4s {
        output[q] = results;
        return;
    }
    let first = UNIT * OUT_WORDS * q;
#for k in UNIT * OUT_WORDS
    if first + {k}u < OUT_WORDS * params.elements {
        output_tail[first + {k}u - UNIT * OUT_WORDS * params.vec4s] = results[{k}];
    }
#end
}
#endif
