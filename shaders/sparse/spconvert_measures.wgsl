// The measures of a matrix, one word each, initially 0.
const LONGEST: u32 = 0u;     // entries of the longest row
const EMPTY: u32 = 1u;       // rows without entries
const SQUARES: u32 = 2u;     // sum of squared lengths, low word first
const MEDIAN: u32 = 4u;      // median row length
const FOUR_FIFTHS: u32 = 5u; // row length at four fifths of the order
const BANDWIDTH: u32 = 6u;   // largest |row - column|
const SIDES: u32 = 7u;       // bit 0: an entry right of the diagonal, bit 1: left of it

@group(0) @binding(1) var<storage, read_write> measures: array<atomic<u32>>;

var<workgroup> wg_measures: array<atomic<u32>, 8>;

fn clear_measures(lane: u32) {
    if lane < 8u {
        atomicStore(&wg_measures[lane], 0u);
    }
    workgroupBarrier();
}
