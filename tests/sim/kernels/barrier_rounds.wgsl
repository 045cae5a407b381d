// Subgroups pass a barrier equally often, but in different rounds of the loop.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(128)
fn wait(@builtin(local_invocation_index) lane: u32) {
    for (var i = 0u; i < 4u; i++) {
#if BROKEN
        if (i + lane / 64u) % 2u == 0u {
#else
        if i % 2u == 0u {
#endif
            workgroupBarrier(); // <- BROKEN
        }
    }
    data[lane] = lane;
}
