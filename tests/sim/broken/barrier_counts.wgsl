// Subgroups pass a barrier differently often: the workgroup never meets again.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(64)
fn wait(@builtin(local_invocation_index) lane: u32) {
    for (var i = 0u; i <= lane / 32u; i++) {
        workgroupBarrier(); // <- found
    }
    data[lane] = lane;
}
