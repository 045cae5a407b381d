// Bisection in sorted elements, one needle a thread. Floats are compared by value: -0 equals +0, and NaN equals NaN and
// is above all numbers. The importer declares `fn is_before(x: u32, needle: u32) -> bool`, on keys; the position found
// is that of the first element that is not.
#import element/f32 as element
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params { n: u32, needles: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> sorted: array<u32>;
@group(0) @binding(2) var<storage, read> needles: array<u32>;
@group(0) @binding(3) var<storage, read_write> output: array<u32>;

// Orders elements as unsigned numbers.
fn search_key(x: T) -> u32 {
#if FLOAT
    let raw = bitcast<u32>(x);
    let bits = select(raw, 0u, raw == 0x80000000u);
    return select(select(bits | 0x80000000u, ~bits, (bits & 0x80000000u) != 0u), 4294967295u, is_nan(x));
#else
#if SIGNED
    return bitcast<u32>(x) ^ 0x80000000u;
#else
    return x;
#endif
#endif
}

fn search(i: u32) {
    if i >= params.needles { return; }
    let needle = search_key(decode(needles[i / PACK], i % PACK));
    var begin = 0u;
    var end = params.n;
    while begin < end {
        let middle = begin + (end - begin) / 2u;
        if is_before(search_key(decode(sorted[middle / PACK], middle % PACK)), needle) {
            begin = middle + 1u;
        } else {
            end = middle;
        }
    }
    output[i] = begin;
}
