// Scan at the speed of memory: one thread holds VEC4S vec4 of a tile in registers, and joins them by subgroup shuffles
// (or in workgroup memory) with the prefix of the tile: nothing; with CARRIED from an earlier kernel; with LOOKBACK
// from earlier tiles. REDUCE only totals the tile.
// Lanes of a subgroup load neighbours. The last 256 bytes or less come as bindings of single words.
#import primitives/scan_advance
#if HEADS
#import primitives/segmented_scan_heads
#endif

const VEC4_ITEMS: u32 = 4u * PACK;

@group(0) @binding(1) var<storage, read> input: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> input_tail: array<u32>;
#if REDUCE
@group(0) @binding(3) var<storage, read_write> totals: array<u32>;
#else
@group(0) @binding(3) var<storage, read_write> output: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> output_tail: array<u32>;
#if CARRIED
#if HEADS
@group(0) @binding(7) var<storage, read> carries: array<u32>;
#else
@group(0) @binding(5) var<storage, read> carries: array<u32>;
#endif
#endif
#endif

// Where vec4 `i` of the tile lies.
fn place(tile: u32, i: u32) -> u32 {
#if REVERSE
    return (params.tiles - tile) * TILE_VEC4S - 1u - i;
#else
    return tile * TILE_VEC4S + i;
#endif
}

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

// Whether all of the tile lies in whole vec4.
fn is_full(tile: u32) -> bool {
#if REVERSE
    return (params.tiles - tile) * TILE_VEC4S <= params.vec4s;
#else
    return (tile + 1u) * TILE_VEC4S <= params.vec4s;
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

#put load_vec4s(load_tile, load_vec4, load_any)

// What lies before each of the thread's vec4, in the run; the run is their total.
fn scan_vec4s(
    run: ptr<function, Item>, loaded: array<Loaded, VEC4S>, tile: u32, first: u32, step: u32, sub_lane: u32,
    sub_size: u32,
) -> array<Item, VEC4S> {
    var before: array<Item, VEC4S>;
#for i in VEC4S
    before[{i}] = advance(run, fold_vec4(loaded[{i}], place(tile, first + {i}u * step)), sub_lane, sub_size);
#end
    return before;
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
#put tile_and_lane()
    let loaded = load_tile(tile, first, step);
    var run = nothing();
    let before = scan_vec4s(&run, loaded, tile, first, step, sub_lane, sub_size);
#put join_tile()
#if REDUCE
#put store_total()
#else
    var base = span.before;
#if CARRIED
    base = join(item(bitcast<Acc>(carries[ITEM_WORDS * (params.first_tile + tile)]), false), base);
#endif
#if LOOKBACK
#put carry_of_tiles()
    base = join(item(carry, false), base);
#endif
    let full = is_full(tile);
#for i in VEC4S
    emit_vec4(base, before[{i}], loaded[{i}], place(tile, first + {i}u * step), full);
#end
#endif
}
