// Second step of compaction: replaces the count of each tile by the number of kept elements before it. Kogge-Stone over
// sums of eight.
// compact_scan_blocks: one workgroup scans BLOCK counts in place and writes their sum.
// compact_scan_sums: one workgroup scans the sums and writes the total.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const EACH: u32 = 8u;
const BLOCK: u32 = WORKGROUP_SIZE * EACH;

struct Params {
    len: u32,    // counts, or sums
    blocks: u32, // of BLOCK counts
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> counts: array<u32>;
@group(0) @binding(2) var<storage, read_write> totals: array<u32>;

var<workgroup> wg_sums: array<u32, WORKGROUP_SIZE>;

// Sum of `value` over the lanes up to this one.
fn scan_lanes(value: u32, lane: u32) -> u32 {
    var sum = value;
    workgroupBarrier();
    wg_sums[lane] = sum;
    for (var step = 1u; step < WORKGROUP_SIZE; step *= 2u) {
        workgroupBarrier();
        if lane >= step { sum += wg_sums[lane - step]; }
        workgroupBarrier();
        wg_sums[lane] = sum;
    }
    workgroupBarrier();
    return sum;
}

// Scans BLOCK counts from `begin` on, after `before` others; gives the sum of all of them.
fn scan_block(begin: u32, before: u32, lane: u32) -> u32 {
    let first = begin + lane * EACH;
    var own = 0u;
    for (var i = first; i < min(first + EACH, params.len); i++) { own += counts[i]; }
    let sum = scan_lanes(own, lane);
    var run = before + sum - own;
    for (var i = first; i < min(first + EACH, params.len); i++) {
        let count = counts[i];
        counts[i] = run;
        run += count;
    }
    return before + wg_sums[WORKGROUP_SIZE - 1u];
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn compact_scan_blocks(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let block = workgroup_index(group);
    if block >= params.blocks { return; }
    let sum = scan_block(block * BLOCK, 0u, lane);
    if lane == 0u { totals[block] = sum; }
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn compact_scan_sums(@builtin(local_invocation_index) lane: u32) {
    var total = 0u;
    for (var begin = 0u; begin < params.len; begin += BLOCK) { total = scan_block(begin, total, lane); }
    if lane == 0u { totals[0] = total; }
}
