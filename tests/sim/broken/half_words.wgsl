// Two invocations write one f16 of a word, and their neighbours the other.
enable f16;
@group(0) @binding(0) var<storage, read_write> data: array<f16>;

@compute @workgroup_size(64)
fn fill(@builtin(local_invocation_index) lane: u32) {
    data[lane / 2u] = f16(lane); // <- found
}
