// Elements of any type that are stored or combined in place, as bits; several share a word, which threads update by
// compare-exchange.
#import dispatch/extent
#import element/f32 as element
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const BITS: u32 = 32u / PACK;
const NAN: u32 = 0x7fc00000u;

struct Params {
    count: u32, // rows of x
    width: u32, // elements of a row
    rows: u32, // rows of `into`
    skip: u32, // rows of each run that were added before
    steps: u32, // rows of each run that are added now, at most
}
@group(0) @binding(0) var<uniform> params: Params;
#put extent(params.count, 0u)
@group(0) @binding(1) var<storage, read> x: array<u32>;
@group(0) @binding(2) var<storage, read> indices: array<u32>;
#if SIGNED_WORDS
alias Cell = i32;
#else
alias Cell = u32;
#endif
@group(0) @binding(3) var<storage, read_write> into: array<atomic<Cell>>;

fn element(i: u32) -> u32 { return extractBits(x[i / PACK], i % PACK * BITS, BITS); }

fn encoded(x: T) -> u32 {
#if BYTES
    return u32(x) & 255u;
#else
    return extractBits(encode(x, x), 0u, BITS);
#endif
}

#if FLOAT
// Orders numbers, -0 below +0.
fn order_key(x: T) -> u32 {
    let bits = bitcast<u32>(x);
    return select(bits | 0x80000000u, ~bits, (bits & 0x80000000u) != 0u);
}
#endif

// What an element becomes by another, both as bits.
fn combined(old: u32, value: u32) -> u32 {
#if SET
    return value;
#else
    let a = decode(old, 0u);
    let b = decode(value, 0u);
#if ADD
    return encoded(a + b);
#else
#if FLOAT
    if is_nan(a) || is_nan(b) { return NAN; }
    let less = order_key(a) < order_key(b);
#else
    let less = a < b;
#endif
#if MIN
    return select(value, old, less);
#endif
#if MAX
    return select(old, value, less);
#endif
#endif
#endif
}

// Combines element `at` with `value`, or with REPLACE stores it.
fn update(at: u32, value: u32) {
    let place = at % PACK * BITS;
    var word = u32(atomicLoad(&into[at / PACK]));
    loop {
#if REPLACE
        let bits = value;
#else
        let bits = combined(extractBits(word, place, BITS), value);
#endif
        let wanted = insertBits(word, bits, place, BITS);
        if wanted == word { break; }
        let result = atomicCompareExchangeWeak(&into[at / PACK], Cell(word), Cell(wanted));
        if result.exchanged { break; }
        word = u32(result.old_value);
    }
}
