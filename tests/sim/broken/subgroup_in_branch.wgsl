// A sum over a subgroup of which half does not take part.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(64)
fn sum(@builtin(local_invocation_index) lane: u32) {
    var total = 0u;
    if data[lane] < 4u {
        total = subgroupAdd(data[lane]); // <- found
    }
    data[lane] = total;
}
