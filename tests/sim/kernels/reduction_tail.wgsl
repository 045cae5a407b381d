// A reduction without barriers in its last steps, which relied on subgroups running in step.
@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;

var<workgroup> wg_sums: array<f32, 128>;

@compute @workgroup_size(128)
fn reduce(@builtin(local_invocation_index) lane: u32) {
    wg_sums[lane] = input[lane];
    workgroupBarrier();
    for (var stride = 64u; stride > 0u; stride >>= 1u) {
        if lane < stride {
            wg_sums[lane] += wg_sums[lane + stride]; // <- BROKEN
        }
#if BROKEN
        if stride > 32u {
            workgroupBarrier();
        }
#else
        workgroupBarrier();
#endif
    }
    if lane == 0u {
        output[0] = wg_sums[0];
    }
}
