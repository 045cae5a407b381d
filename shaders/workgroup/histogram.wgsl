// Counts bins for a workgroup, in its own memory.
//
//     fn histogram_clear(lane: u32)
//     fn histogram_add(bin: u32)
//     fn histogram_count(bin: u32) -> u32
//
// Clear, add as often as you like, put a workgroupBarrier(), then read the counts. A bin of BINS or more is not
// counted.
//
// You declare  WORKGROUP_SIZE, any size; BINS.
// `lane`       is local_invocation_index.
// Costs        BINS words of workgroup memory; histogram_clear has two barriers, the others none.
// Call         histogram_clear in uniform control flow, the others anywhere.
var<workgroup> wg_bins: array<atomic<u32>, BINS>;

fn histogram_clear(lane: u32) {
    workgroupBarrier();
    for (var bin = lane; bin < BINS; bin += WORKGROUP_SIZE) { atomicStore(&wg_bins[bin], 0u); }
    workgroupBarrier();
}

fn histogram_add(bin: u32) {
    if bin < BINS { atomicAdd(&wg_bins[bin], 1u); }
}

fn histogram_count(bin: u32) -> u32 { return atomicLoad(&wg_bins[bin]); }
