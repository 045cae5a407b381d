// A lock held by one lane while the others of its subgroup ask for it.
@group(0) @binding(0) var<storage, read_write> lock: atomic<u32>;
@group(0) @binding(1) var<storage, read_write> sum: atomic<u32>;

@compute @workgroup_size(32)
fn add(@builtin(local_invocation_index) lane: u32) {
#if BROKEN
    loop {
        if atomicExchange(&lock, 1u) == 0u { // <- BROKEN
            break;
        }
    }
    atomicStore(&sum, atomicLoad(&sum) + lane);
    atomicStore(&lock, 0u);
#else
    atomicStore(&lock, 0u);
    atomicAdd(&sum, lane);
#endif
}
