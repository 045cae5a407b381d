// An atomic instead of the lock.
@group(0) @binding(0) var<storage, read_write> lock: atomic<u32>;
@group(0) @binding(1) var<storage, read_write> sum: atomic<u32>;

@compute @workgroup_size(32)
fn add(@builtin(local_invocation_index) lane: u32) {
    atomicStore(&lock, 0u);
    atomicAdd(&sum, lane);
}
