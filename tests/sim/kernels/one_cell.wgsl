// Every workgroup adds its part to one cell.
@group(0) @binding(0) var<storage, read> input: array<u32>;
#if BROKEN
@group(0) @binding(1) var<storage, read_write> sum: array<u32>;
#else
@group(0) @binding(1) var<storage, read_write> sum: atomic<u32>;
#endif

var<workgroup> wg_sum: atomic<u32>;

@compute @workgroup_size(64)
fn total(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    if lane == 0u {
        atomicStore(&wg_sum, 0u);
    }
    workgroupBarrier();
    atomicAdd(&wg_sum, input[id.x]);
    workgroupBarrier();
    if lane == 0u {
#if BROKEN
        sum[0] += atomicLoad(&wg_sum); // <- BROKEN
#else
        atomicAdd(&sum, atomicLoad(&wg_sum));
#endif
    }
}
