// A mean over at least one.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(32)
fn mean(@builtin(local_invocation_index) lane: u32) {
    data[lane] = 100u / max(1u, data[lane] % 4u);
}
