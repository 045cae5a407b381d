// A subgroup sum in which half of the lanes take part.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(64)
fn sum(@builtin(local_invocation_index) lane: u32) {
#if BROKEN
    var total = 0u;
    if data[lane] < 4u {
        total = subgroupAdd(data[lane]); // <- BROKEN
    }
#else
    let total = subgroupAdd(select(0u, data[lane], data[lane] < 4u));
#endif
    data[lane] = total;
}
