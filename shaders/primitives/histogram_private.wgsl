// Histogram privatised in workgroup memory: a workgroup counts its part of the input in COPIES copies of
// SLOTS counters, then adds their sums to the counts in device memory. Neighbouring invocations use
// neighbouring copies, which lie in different banks: equal values do not collide there.
// MULTIPASS: a workgroup counts SLOTS of the bins; as many passes over the input as these take.
#import primitives/histogram_walk
#import workgroup/index

const SLOTS: u32 = 256u;
const COPIES: u32 = 16u;
const COUNTERS: u32 = SLOTS * COPIES;

var<workgroup> wg_counts: array<atomic<u32>, COUNTERS>;
var<private> copy: u32;
#if MULTIPASS
var<private> first_bin: u32;
#endif

fn tally(slot: u32, amount: u32) {
#if MULTIPASS
    let own = slot - first_bin;
    if own < SLOTS {
        atomicAdd(&wg_counts[own * COPIES + copy], amount);
    }
#else
    atomicAdd(&wg_counts[slot * COPIES + copy], amount);
#endif
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn count_parts(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = workgroup_index(group);
    let part = tile % params.parts;
    let first = tile / params.parts * SLOTS;
#if MULTIPASS
    if first >= params.bins {
        return;
    }
    first_bin = first;
#else
    if first > 0u {
        return;
    }
#endif
    copy = lane % COPIES;
    for (var i = lane; i < COUNTERS; i += WORKGROUP_SIZE) {
        atomicStore(&wg_counts[i], 0u);
    }
    workgroupBarrier();
    walk(part, lane);
    workgroupBarrier();
#if BYTES
    let used = SLOTS;
#else
    let used = min(params.bins - first, SLOTS);
#endif
    for (var slot = lane; slot < used; slot += WORKGROUP_SIZE) {
        var total = 0u;
        for (var i = 0u; i < COPIES; i++) {
            // Each invocation begins with another copy, so that they do not meet in one bank.
            total += atomicLoad(&wg_counts[slot * COPIES + (i + slot) % COPIES]);
        }
        if total > 0u {
#if BYTES
            let bin = bin_of(decode(slot, 0u));
            if bin != NOT_COUNTED {
                atomicAdd(&counts[bin], total);
            }
#else
            atomicAdd(&counts[first + slot], total);
#endif
        }
    }
}
