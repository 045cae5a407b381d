// Infinities of both signs are added up.
@group(0) @binding(0) var<storage, read_write> data: array<f32>;

@compute @workgroup_size(64)
fn sum(@builtin(local_invocation_index) lane: u32) {
    let x = 3e38 * data[lane] * 10.0;
    data[lane] = subgroupAdd(x); // <- found
}
