// Subgroups pass a barrier different numbers of times.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(64)
fn wait(@builtin(local_invocation_index) lane: u32) {
#if BROKEN
    for (var i = 0u; i <= lane / 32u; i++) {
#else
    for (var i = 0u; i <= 1u; i++) {
#endif
        workgroupBarrier(); // <- BROKEN
    }
    data[lane] = lane;
}
