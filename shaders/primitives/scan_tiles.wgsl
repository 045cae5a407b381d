// Scan at the speed of memory: one thread holds QUADS vec4 of a tile in registers, and joins them by subgroup shuffles
// (or in workgroup memory) with the prefix of the tile: nothing; with CARRIED from an earlier kernel; with LOOKBACK
// from earlier tiles. REDUCE only totals the tile.
// Lanes of a subgroup load neighbours. The last 256 bytes or less come as bindings of single words.
#import primitives/scan_advance
#if HEADS
#import primitives/segmented_scan_heads
#endif

const QUAD: u32 = 4u * PACK;

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
    return (params.tiles - tile) * TILE_QUADS - 1u - i;
#else
    return tile * TILE_QUADS + i;
#endif
}

fn flip(quad: vec4<u32>) -> vec4<u32> {
#if REVERSE
    return vec4<u32>(in_order(quad.w), in_order(quad.z), in_order(quad.y), in_order(quad.x));
#else
    return quad;
#endif
}

fn words() -> u32 { return (params.elements + PACK - 1u) / PACK; }

fn tail_word(w: u32) -> u32 { return input_tail[min(w, words() - 1u) - 4u * params.quads]; }

// What a thread holds: words, and which of their elements begin a segment.
struct Quad { words: vec4<u32>, heads: u32 }

fn load_quad(q: u32) -> Quad {
#if HEADS
    return Quad(flip(input[q]), head_bits(q));
#else
    return Quad(flip(input[q]), row_heads(QUAD * q, QUAD));
#endif
}

// The same of any vec4, whole or not.
fn load_any(q: u32) -> Quad {
    if q < params.quads { return load_quad(q); }
    let w = 4u * q;
    let words = flip(vec4<u32>(tail_word(w), tail_word(w + 1u), tail_word(w + 2u), tail_word(w + 3u)));
#if HEADS
    return Quad(words, head_bits_at_end(q));
#else
    return Quad(words, row_heads(QUAD * q, QUAD));
#endif
}

// Whether all of the tile lies in whole vec4.
fn is_full(tile: u32) -> bool {
#if REVERSE
    return (params.tiles - tile) * TILE_QUADS <= params.quads;
#else
    return (tile + 1u) * TILE_QUADS <= params.quads;
#endif
}

#if !REDUCE
fn store_quad(q: u32, quad: vec4<u32>, full: bool) {
    let flipped = flip(quad);
    if full || q < params.quads {
        output[q] = flipped;
        return;
    }
    for (var i = 0u; i < 4u; i++) {
        let w = 4u * q + i;
        if w < words() {
            let at = w - 4u * params.quads;
            output_tail[at] = last_word(w, output_tail[at], flipped[i]);
        }
    }
}
#endif

fn quad_marks(quad: Quad, q: u32) -> Marks { return Marks(quad.heads, skipped(QUAD * q, QUAD)); }

// The total of vec4 `q`.
fn fold_quad(quad: Quad, q: u32) -> Item {
    let marks = quad_marks(quad, q);
    var total = element(quad.words.x, 0u, 0u, marks);
    if PACK == 2u { total = join(total, element(quad.words.x, PACK - 1u, 1u, marks)); }
    total = fold_word(total, quad.words.y, PACK, marks);
    total = fold_word(total, quad.words.z, 2u * PACK, marks);
    return fold_word(total, quad.words.w, 3u * PACK, marks);
}

#put load_quads(load_tile, load_quad, load_any)

// What lies before each of the thread's vec4, in the run; the run is their total.
fn scan_quads(
    run: ptr<function, Item>, quads: array<Quad, QUADS>, tile: u32, first: u32, step: u32, sub_lane: u32,
    sub_size: u32,
) -> array<Item, QUADS> {
    var before: array<Item, QUADS>;
#for i in QUADS
    before[{i}] = advance(run, fold_quad(quads[{i}], place(tile, first + {i}u * step)), sub_lane, sub_size);
#end
    return before;
}

#if !REDUCE
fn emit_quad(base: Item, before: Item, quad: Quad, q: u32, full: bool) {
    var run = join(base, before);
    let marks = quad_marks(quad, q);
    let x = emit_word(&run, quad.words.x, 0u, marks);
    let y = emit_word(&run, quad.words.y, PACK, marks);
    let z = emit_word(&run, quad.words.z, 2u * PACK, marks);
    let w = emit_word(&run, quad.words.w, 3u * PACK, marks);
    store_quad(q, vec4<u32>(x, y, z, w), full);
}
#endif

#if LOOKBACK
#put total_of_tile(let quad = load_any(q);, fold_quad(quad, q))
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
    let quads = load_tile(tile, first, step);
    var run = nothing();
    let before = scan_quads(&run, quads, tile, first, step, sub_lane, sub_size);
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
#for i in QUADS
    emit_quad(base, before[{i}], quads[{i}], place(tile, first + {i}u * step), full);
#end
#endif
}
