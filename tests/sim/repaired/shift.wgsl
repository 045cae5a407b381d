// Shifts by less than 32.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(64)
fn mask(@builtin(local_invocation_index) lane: u32) {
    data[lane] = select((1u << (lane % 32u)) - 1u, 0xffffffffu, lane >= 32u);
}
