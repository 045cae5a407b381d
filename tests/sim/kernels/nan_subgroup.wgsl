// A sum of infinities of both signs.
@group(0) @binding(0) var<storage, read_write> data: array<f32>;

@compute @workgroup_size(64)
fn sum(@builtin(local_invocation_index) lane: u32) {
#if BROKEN
    let x = 3e38 * data[lane] * 10.0;
#else
    let x = clamp(3e38 * data[lane] * 10.0, -1e30, 1e30);
#endif
    data[lane] = subgroupAdd(x); // <- BROKEN
}
