// As often for all.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(64)
fn wait(@builtin(local_invocation_index) lane: u32) {
    for (var i = 0u; i <= 1u; i++) {
        workgroupBarrier();
    }
    data[lane] = lane;
}
