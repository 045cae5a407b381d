// Shared by all scan kernels: elements, the monoid, and the chunk of the array that a dispatch covers. A scan combines
// Items: a value or, in SEGMENTED scans (by rows or by head flags), a value and a flag for a segment that began on the
// way to it or, with COUNTED, the number of these. REVERSE flips words and tiles, so that all code walks forward.
#import dispatch/extent
#import element/f32 as element
#import primitives/lift_value as lift
#import op/add as op

struct Params {
    tiles: u32,         // of this dispatch
    first_tile: u32,    // number of the first of them in the order of the scan
    all_tiles: u32,     // of all dispatches
    vec4s: u32,         // vec4 of words that the bindings `input` and `output` hold
    elements: u32,      // of the array that all bindings of the dispatch hold
    first_element: u32, // where they begin in the whole array
    row: u32,           // elements of a row
    piece: u32,         // number of this dispatch
}
@group(0) @binding(0) var<uniform> params: Params;

#put extent(params.elements, params.first_element)

#if SEGMENTED
struct Item { value: Acc, head: u32 }

fn item(value: Acc, head: bool) -> Item { return Item(value, u32(head)); }
fn value_of(x: Item) -> Acc { return x.value; }
fn has_head(x: Item) -> bool { return x.head != 0u; }
fn join(a: Item, b: Item) -> Item {
    let value = select(op_combine(a.value, b.value), b.value, b.head != 0u);
#if COUNTED
    return Item(value, a.head + b.head);
#else
    return Item(value, a.head | b.head);
#endif
}
#else
alias Item = Acc;

fn item(value: Acc, head: bool) -> Item { return value; }
fn value_of(x: Item) -> Acc { return x; }
fn has_head(x: Item) -> bool { return false; }
fn join(a: Item, b: Item) -> Item { return op_combine(a, b); }
#endif

fn nothing() -> Item { return item(op_identity(), false); }

// What a workgroup's scan tells a thread: all before its own item, and all of the workgroup.
struct Span { before: Item, all: Item }

// What is known of the elements of a word or vec4, in the order of the scan.
struct Marks {
    heads: u32, // bit i: element i begins a segment
    skip: u32,  // leading elements beyond the end of the array
}

// Which of the elements `first .. first + count` begin a row.
fn row_heads(first: u32, count: u32) -> u32 {
    var heads = 0u;
#if ROWS
    // `column` is that of the element that comes first in the scan; in REVERSE they count from the row's end.
#if REVERSE
    let last = (params.first_element + first + count) % params.row;
    var column = select(params.row - last, 0u, last == 0u);
#else
    var column = (params.first_element + first) % params.row;
#endif
    if params.row >= count {
        let near = select(params.row - column, 0u, column == 0u);
        return (1u << min(near, 31u)) & ((1u << count) - 1u);
    }
    for (var i = 0u; i < count; i++) {
        heads |= u32(column == 0u) << i;
        column = select(column + 1u, 0u, column + 1u == params.row);
    }
#endif
    return heads;
}

// How many of them, at the beginning, are none.
fn skipped(first: u32, count: u32) -> u32 {
#if REVERSE
    // Only the array's end is not full. Walked forward, what lies beyond it harms nobody.
    return count - min(count, max(extent(), first) - first);
#else
    return 0u;
#endif
}

fn marks_of(first: u32, count: u32) -> Marks { return Marks(row_heads(first, count), skipped(first, count)); }

#if !STATE
// The word's elements in the order of the scan, and back.
fn in_order(word: u32) -> u32 {
#if REVERSE
    return select(word, (word >> 16u) | (word << 16u), PACK == 2u);
#else
    return word;
#endif
}

// Element `i` of the word, which is number `at` of its vec4.
fn element(word: u32, i: u32, at: u32, marks: Marks) -> Item {
    var value = lift(decode(word, i), 0u);
#if REVERSE
    if at < marks.skip { value = op_identity(); }
#endif
    return item(value, ((marks.heads >> at) & 1u) != 0u);
}

fn fold_word(run: Item, word: u32, at: u32, marks: Marks) -> Item {
    var total = run;
    for (var i = 0u; i < PACK; i++) { total = join(total, element(word, i, at + i, marks)); }
    return total;
}

// The result for the next element, before (EXCLUSIVE) or after it has joined the run.
fn step(run: ptr<function, Item>, x: Item) -> T {
#if EXCLUSIVE
    let before = select(value_of(*run), op_identity(), has_head(x));
    *run = join(*run, x);
    return finish(before);
#else
    *run = join(*run, x);
    return finish(value_of(*run));
#endif
}

fn emit_word(run: ptr<function, Item>, word: u32, at: u32, marks: Marks) -> u32 {
    let first = step(run, element(word, 0u, at, marks));
    if PACK == 1u { return encode(first, first); }
    return encode(first, step(run, element(word, PACK - 1u, at + 1u, marks)));
}

// The word at `w` of the array, where `old` stands: an element beyond the end is a neighbour's, and stays.
fn last_word(w: u32, old: u32, new_word: u32) -> u32 {
    let cut = PACK == 2u && 2u * w + 1u == params.elements;
    return select(new_word, (old & 0xffff0000u) | (new_word & 0xffffu), cut);
}
#else
// What the next element's result is made of: what lies before it (EXCLUSIVE), or that and the element.
fn prefix(run: ptr<function, Item>, x: Item) -> Acc {
#if EXCLUSIVE
    let before = select(value_of(*run), op_identity(), has_head(x));
    *run = join(*run, x);
    return before;
#else
    *run = join(*run, x);
    return value_of(*run);
#endif
}
#endif

// In an entry point: keeps the total of the tile.
#block store_total()
    if lane == 0u { totals[params.first_tile + tile] = span.all; }
#end
