// Histogram privatised in workgroup memory: one workgroup counts its part of the input in COPIES copies of SLOTS
// counters, then adds their sums to the counts in device memory. Neighbouring threads use neighbouring copies, which
// lie in different banks: equal values do not collide there.
// BUCKETED: counts buckets of bins.
#import primitives/histogram_walk
#if BUCKETED
#import primitives/histogram_buckets
#endif
#import workgroup/index

const SLOTS: u32 = 256u;
const COPIES: u32 = 16u;
const COUNTERS: u32 = SLOTS * COPIES;

var<workgroup> wg_counts: array<atomic<u32>, COUNTERS>;
var<private> copy: u32;

#if BUCKETED
fn tally(bin: u32, amount: u32) { atomicAdd(&wg_counts[bucket_of(bin) * COPIES + copy], amount); }
#else
fn tally(slot: u32, amount: u32) { atomicAdd(&wg_counts[slot * COPIES + copy], amount); }
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn histogram_private(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let part = workgroup_index(group);
    if part >= params.parts { return; }
    copy = lane % COPIES;
    for (var i = lane; i < COUNTERS; i += WORKGROUP_SIZE) { atomicStore(&wg_counts[i], 0u); }
    workgroupBarrier();
    walk(part, lane);
    workgroupBarrier();
#if BYTES
    let used = SLOTS;
#else
    let used = min(params.bins, SLOTS);
#endif
    for (var slot = lane; slot < used; slot += WORKGROUP_SIZE) {
        var total = 0u;
        for (var i = 0u; i < COPIES; i++) {
            // Each thread begins with another copy, so that they do not meet in one bank.
            total += atomicLoad(&wg_counts[slot * COPIES + (i + slot) % COPIES]);
        }
        if total > 0u {
#if BYTES
            let bin = bin_of(decode(slot, 0u));
            if bin != NOT_COUNTED { atomicAdd(&counts[bin], total); }
#else
            atomicAdd(&counts[slot], total);
#endif
        }
    }
}
