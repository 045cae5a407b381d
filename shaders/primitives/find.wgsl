// The first place at which a predicate holds, or the number of elements, and at how many places it holds. A workgroup
// walks tiles and joins its results to those of others by atomics. With PAIRS the predicate takes an element of each of
// two arrays; with DIFFER it is whether these differ.
#import dispatch/extent
#import element/f32 as element
#import primitives/differs
#import primitives/keep_nonzero as predicate
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const ITEMS: u32 = 16u;
const TILE: u32 = WORKGROUP_SIZE * ITEMS;
const BITS: u32 = 32u / PACK;

struct Params {
    n: u32,
    groups: u32, // workgroups
}
@group(0) @binding(0) var<uniform> params: Params;
#put extent(params.n, 0u)
@group(0) @binding(1) var<storage, read> input: array<u32>;
#if PAIRS
@group(0) @binding(2) var<storage, read> other: array<u32>;
const RESULT_BINDING: u32 = 3u;
#else
const RESULT_BINDING: u32 = 2u;
#endif
@group(0) @binding(RESULT_BINDING) var<storage, read_write> result: array<atomic<u32>, 2>;

var<workgroup> wg_first: atomic<u32>;
var<workgroup> wg_count: atomic<u32>;

fn holds(i: u32) -> bool {
#if DIFFER
    let at = i % PACK * BITS;
    return differs(extractBits(input[i / PACK], at, BITS), extractBits(other[i / PACK], at, BITS));
#else
    let x = decode(input[i / PACK], i % PACK);
#if PAIRS
    return keep(x, decode(other[i / PACK], i % PACK));
#else
    return keep(x);
#endif
#endif
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn find(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    if lane == 0u {
        atomicStore(&wg_first, 0xffffffffu);
        atomicStore(&wg_count, 0u);
    }
    workgroupBarrier();
    let there = extent();
    var first = there;
    var count = 0u;
    for (var begin = workgroup_index(group) * TILE; begin < there; begin += params.groups * TILE) {
#for k in ITEMS
        let i_{k} = begin + lane + {k}u * WORKGROUP_SIZE;
        let yes_{k} = holds(min(i_{k}, there - 1u)) & (i_{k} < there);
#end
#for k in ITEMS
        first = min(first, select(there, i_{k}, yes_{k}));
        count += select(0u, 1u, yes_{k});
#end
    }
    atomicMin(&wg_first, first);
    atomicAdd(&wg_count, count);
    workgroupBarrier();
    if lane == 0u {
        atomicMin(&result[0], atomicLoad(&wg_first));
        atomicAdd(&result[1], atomicLoad(&wg_count));
    }
}
