// A barrier of the subgroup that all of it reaches.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(64)
fn wait(@builtin(local_invocation_index) lane: u32) {
    subgroupBarrier();
    data[lane] = lane;
}
