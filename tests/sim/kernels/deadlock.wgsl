// Two workgroups take two locks in opposite order, and each waits for the other.
@group(0) @binding(0) var<storage, read_write> locks: array<atomic<u32>, 2>;
@group(0) @binding(1) var<storage, read_write> sums: array<atomic<u32>, 2>;

@compute @workgroup_size(1)
fn add(@builtin(workgroup_id) group: vec3<u32>) {
#if BROKEN
    let one = group.x % 2u;
    while atomicExchange(&locks[one], 1u) != 0u {}
    storageBarrier();
    while atomicExchange(&locks[1u - one], 1u) != 0u {} // <- BROKEN
#else
    atomicAdd(&locks[group.x % 2u], 1u);
    storageBarrier();
#endif
    atomicAdd(&sums[0], 1u);
    atomicAdd(&sums[1], 2u);
#if BROKEN
    atomicStore(&locks[0], 0u);
    atomicStore(&locks[1], 0u);
#endif
}
