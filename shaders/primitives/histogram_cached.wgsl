// Histogram of more bins than workgroup memory holds: the first bin that a workgroup meets for each of SLOTS places
// owns it and is counted there; other bins of that place are counted in device memory. Full bins come early, so skewed
// input does not queue for one word of device memory.
#import primitives/histogram_walk
#import workgroup/index

const SLOTS: u32 = 2048u;

// Bin + 1 of the owner of each place, 0 for none, and its count.
var<workgroup> wg_owners: array<atomic<u32>, SLOTS>;
var<workgroup> wg_counts: array<atomic<u32>, SLOTS>;

fn tally(bin: u32, amount: u32) {
    // Neighbouring bins are often full together: they get different places.
    let place = (bin ^ (bin / SLOTS)) % SLOTS;
    var owner = atomicLoad(&wg_owners[place]);
    if owner == 0u {
        let taken = atomicCompareExchangeWeak(&wg_owners[place], 0u, bin + 1u);
        // A weak exchange may fail for no reason: then nobody owns the place yet.
        owner = select(taken.old_value, bin + 1u, taken.exchanged);
    }
    if owner == bin + 1u { atomicAdd(&wg_counts[place], amount); } else { atomicAdd(&counts[bin], amount); }
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn histogram_cached(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let part = workgroup_index(group);
    if part >= params.parts { return; }
    for (var i = lane; i < SLOTS; i += WORKGROUP_SIZE) {
        atomicStore(&wg_owners[i], 0u);
        atomicStore(&wg_counts[i], 0u);
    }
    workgroupBarrier();
    walk(part, lane);
    workgroupBarrier();
    for (var i = lane; i < SLOTS; i += WORKGROUP_SIZE) {
        let owner = atomicLoad(&wg_owners[i]);
        if owner > 0u { atomicAdd(&counts[owner - 1u], atomicLoad(&wg_counts[i])); }
    }
}
