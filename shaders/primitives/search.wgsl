// Bisection in sorted elements, one needle a thread. The importer declares
// `fn is_before(x: u32, needle: u32) -> bool`, on keys; the position found is that of the first element that is not.
#import element/f32 as element
#import primitives/search_key
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params { n: u32, needles: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> sorted: array<u32>;
@group(0) @binding(2) var<storage, read> needles: array<u32>;
@group(0) @binding(3) var<storage, read_write> output: array<u32>;

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
