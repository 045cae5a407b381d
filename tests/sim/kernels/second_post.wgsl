// A lock taken after drawing a number: its holder may be stopped forever.
@group(0) @binding(0) var<storage, read_write> state: array<atomic<u32>, 2>;
@group(0) @binding(1) var<storage, read_write> sum: atomic<u32>;

@compute @workgroup_size(1)
fn draw() {
    let number = atomicAdd(&state[0], 1u);
#if BROKEN
    while atomicExchange(&state[1], 1u) != 0u { // <- BROKEN
    }
    atomicStore(&sum, atomicLoad(&sum) + number);
    atomicStore(&state[1], 0u);
#else
    atomicAdd(&sum, number);
#endif
}
