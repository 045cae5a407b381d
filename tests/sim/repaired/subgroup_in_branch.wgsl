// All take part, some with nothing.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(64)
fn sum(@builtin(local_invocation_index) lane: u32) {
    let total = subgroupAdd(select(0u, data[lane], data[lane] < 4u));
    data[lane] = total;
}
