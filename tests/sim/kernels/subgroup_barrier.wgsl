// A subgroup barrier that every other thread reaches.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(64)
fn wait(@builtin(local_invocation_index) lane: u32) {
#if BROKEN
    if lane % 2u == 0u {
        subgroupBarrier(); // <- BROKEN
    }
#else
    subgroupBarrier();
#endif
    data[lane] = lane;
}
