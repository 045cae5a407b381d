// Scan, the teaching ladder: one workgroup scans one tile with the tree that the variant imports, after each thread has
// scanned WORDS_PER_THREAD words of its own (Kirk and Hwu's coarsening, if above 1: words are then staged in workgroup
// memory, so that neighbouring threads load and store neighbouring words).
// Passes: totals of tiles (REDUCE), scan of the totals, scan of tiles with their prefixes (CARRIED).
#import primitives/scan_element
#import workgroup/index
#import workgroup/scan_kogge_stone as tree

const WORKGROUP_SIZE: u32 = 256u;
const WORDS_PER_THREAD: u32 = 1u;
const TILE: u32 = WORKGROUP_SIZE * WORDS_PER_THREAD;

@group(0) @binding(1) var<storage, read> input: array<u32>;
#if REDUCE
@group(0) @binding(2) var<storage, read_write> totals: array<Item>;
#else
@group(0) @binding(2) var<storage, read_write> output: array<u32>;
#endif
#if CARRIED
@group(0) @binding(3) var<storage, read> carries: array<Item>;
#endif

// Where word `i` of the tile lies.
fn place(tile: u32, i: u32) -> u32 {
#if REVERSE
    return (params.tiles - tile) * TILE - 1u - i;
#else
    return tile * TILE + i;
#endif
}

#if STATE
// Elements of several words: a "word" is an element, as a state.
alias Word = Acc;

fn load_word(w: u32) -> Word {
    let first = IN_WORDS * min(w, params.elements - 1u);
    return pack(state_of(
#for k in IN_WORDS
        decode(input[first + {k}u], 0u),
#end
    ));
}

fn item_at(word: Word, w: u32) -> Item {
    let marks = marks_of(w, 1u);
    return item(select(word, op_identity(), marks.skip != 0u), marks.heads != 0u);
}

fn fold(run: Item, word: Word, w: u32) -> Item { return join(run, item_at(word, w)); }
#else
alias Word = u32;

fn words() -> u32 { return (params.elements + PACK - 1u) / PACK; }

fn load_word(w: u32) -> Word { return in_order(input[min(w, words() - 1u)]); }

fn fold(run: Item, word: Word, w: u32) -> Item { return fold_word(run, word, 0u, marks_of(PACK * w, PACK)); }
#endif

#if STAGED
var<workgroup> wg_words: array<Word, TILE>;

fn word(tile: u32, i: u32) -> Word { return wg_words[i]; }
#else
fn word(tile: u32, i: u32) -> Word { return load_word(place(tile, i)); }
#endif

#if !REDUCE
#if STATE
fn emit(run: ptr<function, Item>, word: Word, w: u32) -> Word { return prefix(run, item_at(word, w)); }

fn store_word(w: u32, x: Word) {
    if w >= params.elements { return; }
    let result = finish(x);
#for k in OUT_WORDS
    output[OUT_WORDS * w + {k}u] = result[{k}];
#end
}
#else
fn emit(run: ptr<function, Item>, word: Word, w: u32) -> Word {
    return emit_word(run, word, 0u, marks_of(PACK * w, PACK));
}

fn store_word(w: u32, x: Word) {
    if w < words() { output[w] = last_word(w, output[w], in_order(x)); }
}
#endif
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
#if REDUCE
fn scan_ladder_reduce(
#else
fn scan_ladder(
#endif
    @builtin(workgroup_id) group: vec3<u32>,
#if SUBGROUPS
#put subgroup_builtins()
#else
    @builtin(local_invocation_index) lane: u32,
#endif
) {
    let tile = workgroup_index(group);
    if tile >= params.tiles { return; }
#if SUBGROUPS
    let lane = sub_id * sub_size + sub_lane;
#endif
#if STAGED
    for (var i = lane; i < TILE; i += WORKGROUP_SIZE) { wg_words[i] = load_word(place(tile, i)); }
    workgroupBarrier();
#endif
    let first = lane * WORDS_PER_THREAD;
    var mine = nothing();
    for (var i = first; i < first + WORDS_PER_THREAD; i++) {
        mine = fold(mine, word(tile, i), place(tile, i));
    }
#if SUBGROUPS
    let span = workgroup_scan(mine, sub_lane, sub_size, sub_id, sub_count);
#else
    let span = workgroup_scan(mine, lane);
#endif
#if REDUCE
#put store_total()
#else
    var run = span.before;
#if CARRIED
    run = join(item(value_of(carries[params.first_tile + tile]), false), run);
#endif
    for (var i = first; i < first + WORDS_PER_THREAD; i++) {
        let x = emit(&run, word(tile, i), place(tile, i));
#if STAGED
        wg_words[i] = x;
    }
    workgroupBarrier();
    for (var i = lane; i < TILE; i += WORKGROUP_SIZE) { store_word(place(tile, i), wg_words[i]); }
#else
        store_word(place(tile, i), x);
    }
#endif
#endif
}
