// Ranks keys within a workgroup without subgroup operations: 32 threads are a row, and a word of workgroup memory for
// each digit collects a mask of its threads.
// The importer declares WORKGROUP_SIZE, RADIX and `wg_words`: ROWS * RADIX atomic counts of the digits of a row.
#import primitives/sort_sum

const ROW: u32 = 32u;
const ROWS: u32 = WORKGROUP_SIZE / ROW;

var<workgroup> wg_masks: array<atomic<u32>, ROWS * RADIX>;

var<private> row: u32;
var<private> lane: u32;
const rows: u32 = ROWS;
const row_size: u32 = ROW;

// Once for a workgroup: says who it is, and clears the masks, of which each rank() leaves none set.
fn take_place(index: u32) {
    invocation = index;
    row = index / ROW;
    lane = index % ROW;
    for (var i = invocation; i < ROWS * RADIX; i += WORKGROUP_SIZE) { atomicStore(&wg_masks[i], 0u); }
}

// How many keys with this digit the row has ranked before, counted in wg_words.
fn rank(digit: u32) -> u32 {
    let at = row * RADIX + digit;
    atomicOr(&wg_masks[at], 1u << lane);
    workgroupBarrier();
    let peers = atomicLoad(&wg_masks[at]);
    let before = atomicLoad(&wg_words[at]);
    workgroupBarrier();
    let earlier = countOneBits(peers & ((1u << lane) - 1u));
    if earlier == 0u {
        atomicStore(&wg_words[at], before + countOneBits(peers));
        atomicStore(&wg_masks[at], 0u);
    }
    workgroupBarrier();
    return before + earlier;
}
