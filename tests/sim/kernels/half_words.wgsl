// Two threads write the same f16; their neighbours write the other half of the word, which is no race.
enable f16;
@group(0) @binding(0) var<storage, read_write> data: array<f16>;

@compute @workgroup_size(64)
fn fill(@builtin(local_invocation_index) lane: u32) {
#if BROKEN
    data[lane / 2u] = f16(lane); // <- BROKEN
#else
    data[lane] = f16(lane);
#endif
}
