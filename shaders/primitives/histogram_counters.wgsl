// Counters of 16 bits in workgroup memory, two to a word. The addition that brings one to FULL moves FULL of it to
// device memory. Between two barriers the threads of a workgroup add at most FULL together: a counter is below FULL at
// a barrier, so it cannot overflow into its neighbour before the next, and only one addition reaches FULL; its thread
// subtracts FULL before the barrier.
// Requires WORKGROUP_SIZE, WORDS, and `bin_at(slot)`, the bin of a counter; slots from SLOTS on have no bin.
const FULL: u32 = 32768u;
const SLOTS: u32 = 2u * WORDS;

// Slot i is the low half of word i, slot i + WORDS its high half: neighbours in different words.
var<workgroup> wg_counts: array<atomic<u32>, WORDS>;

fn clear_counters(lane: u32) {
    for (var i = lane; i < WORDS; i += WORKGROUP_SIZE) { atomicStore(&wg_counts[i], 0u); }
}

// Gives the word's bit that says that the counter has just become FULL, or 0.
fn add(slot: u32, amount: u32) -> u32 {
    if slot >= SLOTS { return 0u; }
    let high = slot >= WORDS;
    let one = select(1u, 65536u, high);
    let old = atomicAdd(&wg_counts[select(slot, slot - WORDS, high)], amount * one);
    return (old + amount * one) & ~old & (FULL * one);
}

fn settle(slot: u32, full: u32) {
    if full != 0u {
        atomicSub(&wg_counts[select(slot, slot - WORDS, slot >= WORDS)], full);
        atomicAdd(&counts[bin_at(slot)], FULL);
    }
}

fn count_slots(slots: vec4<u32>) {
    // All of them equal are the usual case of crowded bins, where additions queue.
    if all(slots == slots.xxxx) {
        settle(slots.x, add(slots.x, 4u));
        return;
    }
    let x = add(slots.x, 1u);
    let y = add(slots.y, 1u);
    let z = add(slots.z, 1u);
    let w = add(slots.w, 1u);
    if (x | y | z | w) != 0u {
        settle(slots.x, x);
        settle(slots.y, y);
        settle(slots.z, z);
        settle(slots.w, w);
    }
}

fn flush_counters(lane: u32) {
    for (var slot = lane; slot < SLOTS; slot += WORKGROUP_SIZE) {
        let high = slot >= WORDS;
        let word = atomicLoad(&wg_counts[select(slot, slot - WORDS, high)]);
        let total = select(word & 0xffffu, word >> 16u, high);
        if total > 0u { atomicAdd(&counts[bin_at(slot)], total); }
    }
}
