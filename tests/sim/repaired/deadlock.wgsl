// Each sum is added to by itself, without a lock.
@group(0) @binding(0) var<storage, read_write> locks: array<atomic<u32>, 2>;
@group(0) @binding(1) var<storage, read_write> sums: array<atomic<u32>, 2>;

@compute @workgroup_size(1)
fn add(@builtin(workgroup_id) group: vec3<u32>) {
    atomicAdd(&locks[group.x % 2u], 1u);
    storageBarrier();
    atomicAdd(&sums[0], 1u);
    atomicAdd(&sums[1], 2u);
}
