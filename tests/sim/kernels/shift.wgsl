// A mask of 32 bits by a shift of 32.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(64)
fn mask(@builtin(local_invocation_index) lane: u32) {
#if BROKEN
    data[lane] = (1u << lane) - 1u; // <- BROKEN
#else
    data[lane] = select((1u << (lane % 32u)) - 1u, 0xffffffffu, lane >= 32u);
#endif
}
