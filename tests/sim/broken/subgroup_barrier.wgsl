// A barrier of the subgroup that every other invocation reaches.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(64)
fn wait(@builtin(local_invocation_index) lane: u32) {
    if lane % 2u == 0u {
        subgroupBarrier(); // <- found
    }
    data[lane] = lane;
}
