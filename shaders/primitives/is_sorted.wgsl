// Clears the result, which begins as 1, if an element belongs before the one before it. A thread compares ITEMS pairs.
#import dispatch/extent
#import element/f32 as element
#import primitives/search_key
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const ITEMS: u32 = 8u;

struct Params { n: u32 }
@group(0) @binding(0) var<uniform> params: Params;
#put extent(params.n, 0u)
@group(0) @binding(1) var<storage, read> input: array<u32>;
@group(0) @binding(2) var<storage, read_write> result: array<atomic<u32>>;

// NaN is last in both directions.
fn key_at(i: u32) -> u32 {
    let x = decode(input[i / PACK], i % PACK);
#if DESCENDING
    return select(~search_key(x), 4294967295u, is_nan(x));
#else
    return search_key(x);
#endif
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn is_sorted(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first = workgroup_index(group) * WORKGROUP_SIZE * ITEMS + lane;
    var sorted = true;
#for k in ITEMS
    if first + {k}u * WORKGROUP_SIZE + 1u < extent() {
        let i = first + {k}u * WORKGROUP_SIZE;
        sorted &= key_at(i) <= key_at(i + 1u);
    }
#end
    if !sorted { atomicStore(&result[0], 0u); }
}
