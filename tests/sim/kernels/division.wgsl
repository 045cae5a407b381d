// A mean over zero elements.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(32)
fn mean(@builtin(local_invocation_index) lane: u32) {
#if BROKEN
    data[lane] = 100u / (data[lane] % 4u); // <- BROKEN
#else
    data[lane] = 100u / max(1u, data[lane] % 4u);
#endif
}
