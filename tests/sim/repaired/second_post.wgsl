// No lock.
@group(0) @binding(0) var<storage, read_write> state: array<atomic<u32>, 2>;
@group(0) @binding(1) var<storage, read_write> sum: atomic<u32>;

@compute @workgroup_size(1)
fn draw() {
    let number = atomicAdd(&state[0], 1u);
    atomicAdd(&sum, number);
}
