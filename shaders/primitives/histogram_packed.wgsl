// Histogram of more bins than workgroup memory holds: two counters lie in a word of it, and the workgroups that count
// the others in the same part of the input stand beside each other, so that a cache serves all but one of them.
// The addition that brings a counter to FULL moves FULL of it to device memory.
// A workgroup counts SLOTS of the bins in its part; requires LOADS * WORKGROUP_SIZE * 4 * PACK <= FULL.
#import primitives/histogram_bins
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const WORDS: u32 = 4096u;
const SLOTS: u32 = 2u * WORDS;
// vec4s that an invocation has in flight.
const LOADS: u32 = 4u;
const STEP: u32 = LOADS * WORKGROUP_SIZE;
const FULL: u32 = 32768u;
// Steps from barrier to barrier. At a barrier each counter is below FULL, and until the next all invocations together
// add at most FULL: no counter passes 65535 into its neighbour, however late FULL is taken off, and one addition at the
// most reaches FULL, whose invocation takes it off before it comes to the barrier.
const WINDOW: u32 = FULL / (STEP * 4u * PACK);

// Slot i is the low half of word i, slot i + WORDS its high half: neighbours in different words.
var<workgroup> wg_counts: array<atomic<u32>, WORDS>;
var<private> first_bin: u32;

// Gives the word's bit that says that the counter has just become FULL, or 0.
fn add(bin: u32, amount: u32) -> u32 {
    let slot = bin - first_bin;
    // Not of these bins, or of none.
    if slot >= SLOTS {
        return 0u;
    }
    let high = slot >= WORDS;
    let one = select(1u, 65536u, high);
    let old = atomicAdd(&wg_counts[select(slot, slot - WORDS, high)], amount * one);
    return (old + amount * one) & ~old & (FULL * one);
}

fn settle(bin: u32, full: u32) {
    if full != 0u {
        let slot = bin - first_bin;
        atomicSub(&wg_counts[select(slot, slot - WORDS, slot >= WORDS)], full);
        atomicAdd(&counts[bin], FULL);
    }
}

fn count_bins(bins: vec4<u32>) {
    // All of them equal are the usual case of crowded bins, where additions queue.
    if all(bins == bins.xxxx) {
        settle(bins.x, add(bins.x, 4u));
        return;
    }
    let x = add(bins.x, 1u);
    let y = add(bins.y, 1u);
    let z = add(bins.z, 1u);
    let w = add(bins.w, 1u);
    if (x | y | z | w) != 0u {
        settle(bins.x, x);
        settle(bins.y, y);
        settle(bins.z, z);
        settle(bins.w, w);
    }
}

#if VECTORS
fn count_vector(v: vec4<u32>) {
    for (var i = 0u; i < PACK; i++) {
        count_bins(vec4<u32>(bin_of(decode(v.x, i)), bin_of(decode(v.y, i)), bin_of(decode(v.z, i)), bin_of(decode(v.w, i))));
    }
}

fn walk(part: u32, lane: u32) {
    var steps = 0u;
    for (var first = part * STEP; first < params.vectors; first += params.parts * STEP) {
        let at = first + lane;
        if first + STEP <= params.vectors {
#repeat LOADS
            let v$ = vectors[at + $u * WORKGROUP_SIZE];
#end
#repeat LOADS
            count_vector(v$);
#end
        } else {
            for (var i = at; i < params.vectors; i += WORKGROUP_SIZE) {
                count_vector(vectors[i]);
            }
        }
        steps += 1u;
        if steps == WINDOW {
            workgroupBarrier();
            steps = 0u;
        }
    }
}
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn count_packed(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let passes = (params.bins + SLOTS - 1u) / SLOTS;
    let tile = workgroup_index(group);
    let part = tile / passes;
    if part >= params.parts {
        return;
    }
    // Turned from part to part: a multiprocessor may get workgroups at equal distances, and not all of them are to be of
    // the pass that has the crowded bins.
    let first = (tile + part) % passes * SLOTS;
    first_bin = first;
    for (var i = lane; i < WORDS; i += WORKGROUP_SIZE) {
        atomicStore(&wg_counts[i], 0u);
    }
    workgroupBarrier();
    if part == 0u {
        // What fills no vec4: fewer than FULL, while all counters are 0.
        for (var at = params.vectors * 4u * PACK + lane; at < params.n; at += WORKGROUP_SIZE) {
            let bin = bin_of(element(at));
            settle(bin, add(bin, 1u));
        }
    }
#if VECTORS
    walk(part, lane);
#endif
    workgroupBarrier();
    let used = min(params.bins - first, SLOTS);
    for (var slot = lane; slot < used; slot += WORKGROUP_SIZE) {
        let high = slot >= WORDS;
        let word = atomicLoad(&wg_counts[select(slot, slot - WORDS, high)]);
        let total = select(word & 0xffffu, word >> 16u, high);
        if total > 0u {
            atomicAdd(&counts[first + slot], total);
        }
    }
}
