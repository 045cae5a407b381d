// A Kogge-Stone scan without the barrier between the read and the write of a step.
@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;

var<workgroup> wg_sums: array<u32, 64>;

@compute @workgroup_size(64)
fn scan(@builtin(local_invocation_index) lane: u32) {
    wg_sums[lane] = input[lane];
    for (var stride = 1u; stride < 64u; stride *= 2u) {
        workgroupBarrier();
        var sum = wg_sums[lane];
        if lane >= stride {
            sum += wg_sums[lane - stride]; // <- other
        }
#if !BROKEN
        workgroupBarrier();
#endif
        wg_sums[lane] = sum; // <- BROKEN
    }
    output[lane] = wg_sums[lane];
}
