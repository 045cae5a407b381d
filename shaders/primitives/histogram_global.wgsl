// Histogram by atomics in device memory; threads share nothing else. One thread counts every element whose index
// differs from its own by a multiple of the number of threads; with CONTIGUOUS its own range, so that neighbouring
// threads load from far apart: the baseline.
#import primitives/histogram_bins
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

@compute @workgroup_size(WORKGROUP_SIZE)
fn histogram_global_clear(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let bin = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if bin < params.bins { atomicStore(&counts[bin], 0u); }
}

fn count(at: u32) {
    let bin = bin_of(element(at));
    if bin != NOT_COUNTED { atomicAdd(&counts[bin], 1u); }
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn histogram_global_count(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = workgroup_index(group);
    if tile >= params.parts { return; }
    let invocation = tile * WORKGROUP_SIZE + lane;
    let invocations = params.parts * WORKGROUP_SIZE;
    let there = extent();
#if CONTIGUOUS
    let share = (there + invocations - 1u) / invocations;
    let begin = min(invocation * share, there);
    let end = min(begin + share, there);
    for (var at = begin; at < end; at++) { count(at); }
#else
    for (var at = invocation; at < there; at += invocations) { count(at); }
#endif
}
