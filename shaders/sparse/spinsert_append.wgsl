// Writes a list behind the elements that another list holds already. One thread per word; with HALVES two f16 share a
// word, and the one before the first new element is kept.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    first: u32, // elements that are there
    count: u32, // elements to append
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> added: array<u32>;
@group(0) @binding(2) var<storage, read_write> list: array<u32>;

#if HALVES
// The f16 at this index of the list, as bits.
fn half_at(at: u32, old: u32) -> u32 {
    let i = at - params.first;
    if at < params.first || i >= params.count {
        return old;
    }
    return (added[i / 2u] >> (16u * (i % 2u))) & 0xffffu;
}
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn spinsert_append(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let item = workgroup_index(group) * WORKGROUP_SIZE + lane;
#if HALVES
    let word = params.first / 2u + item;
    if 2u * word >= params.first + params.count {
        return;
    }
    let old = list[word];
    list[word] = half_at(2u * word, old & 0xffffu) | (half_at(2u * word + 1u, old >> 16u) << 16u);
#else
    if item < params.count {
        list[params.first + item] = added[item];
    }
#endif
}
