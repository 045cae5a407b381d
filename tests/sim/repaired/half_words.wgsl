// Neighbours write the two f16 of a word: that is no race.
enable f16;
@group(0) @binding(0) var<storage, read_write> data: array<f16>;

@compute @workgroup_size(64)
fn fill(@builtin(local_invocation_index) lane: u32) {
    data[lane] = f16(lane);
}
