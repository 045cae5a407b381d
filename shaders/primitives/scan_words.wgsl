// Elements of one word or less, for scan_tiles: vec4 of words, and the last 256 bytes or less as single words.
// The importer imports primitives/scan_element.
#if HEADS
#import primitives/segmented_scan_heads as heads
#endif

const VEC4_ITEMS: u32 = 4u * PACK;

@group(0) @binding(1) var<storage, read> input: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> input_tail: array<u32>;
#if !REDUCE
@group(0) @binding(3) var<storage, read_write> output: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> output_tail: array<u32>;
#endif

fn flip(x: vec4<u32>) -> vec4<u32> {
#if REVERSE
    return vec4<u32>(in_order(x.w), in_order(x.z), in_order(x.y), in_order(x.x));
#else
    return x;
#endif
}

fn words() -> u32 { return (params.elements + PACK - 1u) / PACK; }

fn tail_word(w: u32) -> u32 { return input_tail[min(w, words() - 1u) - 4u * params.vec4s]; }

// What a thread holds: words, and which of their elements begin a segment.
struct Loaded { words: vec4<u32>, heads: u32 }

fn load_vec4(q: u32) -> Loaded {
#if HEADS
    return Loaded(flip(input[q]), head_bits(q));
#else
    return Loaded(flip(input[q]), row_heads(VEC4_ITEMS * q, VEC4_ITEMS));
#endif
}

// The same of any vec4, whole or not.
fn load_any(q: u32) -> Loaded {
    if q < params.vec4s { return load_vec4(q); }
    let w = 4u * q;
    let words = flip(vec4<u32>(tail_word(w), tail_word(w + 1u), tail_word(w + 2u), tail_word(w + 3u)));
#if HEADS
    return Loaded(words, head_bits_at_end(q));
#else
    return Loaded(words, row_heads(VEC4_ITEMS * q, VEC4_ITEMS));
#endif
}

#if !REDUCE
fn store_vec4(q: u32, x: vec4<u32>, full: bool) {
    let flipped = flip(x);
    if full || q < params.vec4s {
        output[q] = flipped;
        return;
    }
    for (var i = 0u; i < 4u; i++) {
        let w = 4u * q + i;
        if w < words() {
            let at = w - 4u * params.vec4s;
            output_tail[at] = last_word(w, output_tail[at], flipped[i]);
        }
    }
}
#endif

fn vec4_marks(loaded: Loaded, q: u32) -> Marks { return Marks(loaded.heads, skipped(VEC4_ITEMS * q, VEC4_ITEMS)); }

// The total of vec4 `q`.
fn fold_vec4(loaded: Loaded, q: u32) -> Item {
    let marks = vec4_marks(loaded, q);
    var total = element(loaded.words.x, 0u, 0u, marks);
    if PACK == 2u { total = join(total, element(loaded.words.x, PACK - 1u, 1u, marks)); }
    total = fold_word(total, loaded.words.y, PACK, marks);
    total = fold_word(total, loaded.words.z, 2u * PACK, marks);
    return fold_word(total, loaded.words.w, 3u * PACK, marks);
}

#if !REDUCE
fn emit_vec4(base: Item, before: Item, loaded: Loaded, q: u32, full: bool) {
    var run = join(base, before);
    let marks = vec4_marks(loaded, q);
    let x = emit_word(&run, loaded.words.x, 0u, marks);
    let y = emit_word(&run, loaded.words.y, PACK, marks);
    let z = emit_word(&run, loaded.words.z, 2u * PACK, marks);
    let w = emit_word(&run, loaded.words.w, 3u * PACK, marks);
    store_vec4(q, vec4<u32>(x, y, z, w), full);
}
#endif
