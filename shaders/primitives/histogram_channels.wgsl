// Counts the first ACTIVE of CHANNELS interleaved channels in bins of their own. A thread takes each group of channels
// whose number differs from its own by a multiple of the number of threads. With PRIVATE a workgroup counts in its own
// memory and adds that at the end; else it counts by atomics in device memory. In the parameters `n` counts groups.
#import primitives/histogram_bins
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const CHANNELS: u32 = 3u;
const ACTIVE: u32 = 3u;

#if PRIVATE
const COUNTS: u32 = 4096u;
var<workgroup> wg_counts: array<atomic<u32>, COUNTS>;
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn histogram_channels(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = workgroup_index(group);
    if index >= params.parts { return; }
#if PRIVATE
    let cells = ACTIVE * params.bins;
    for (var cell = lane; cell < cells; cell += WORKGROUP_SIZE) { atomicStore(&wg_counts[cell], 0u); }
    workgroupBarrier();
#endif
    let n = extent();
    for (var at = index * WORKGROUP_SIZE + lane; at < n; at += params.parts * WORKGROUP_SIZE) {
#for c in ACTIVE
        let bin_{c} = bin_of(element(at * CHANNELS + {c}u));
        if bin_{c} != NOT_COUNTED {
#if PRIVATE
            atomicAdd(&wg_counts[{c}u * params.bins + bin_{c}], 1u);
#else
            atomicAdd(&counts[{c}u * params.bins + bin_{c}], 1u);
#endif
        }
#end
    }
#if PRIVATE
    workgroupBarrier();
    for (var cell = lane; cell < cells; cell += WORKGROUP_SIZE) {
        let sum = atomicLoad(&wg_counts[cell]);
        if sum > 0u { atomicAdd(&counts[cell], sum); }
    }
#endif
}
