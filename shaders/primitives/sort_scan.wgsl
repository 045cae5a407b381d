// Exclusive sums of each row of counts, in place, and the total of each row. One workgroup scans one row: each thread
// sums a run of it, then the workgroup scans these sums. With RUNS one thread scans one row.
#import primitives/sort_sum
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    first: u32, // where the first row begins
    len: u32,   // counts of a row
    rows: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> counts: array<u32>;
@group(0) @binding(2) var<storage, read_write> totals: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn sort_scan(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
#if RUNS
    let row = workgroup_index(group) * WORKGROUP_SIZE + index;
    if row >= params.rows { return; }
    var before = 0u;
    let begin = params.first + row * params.len;
    for (var i = begin; i < begin + params.len; i++) {
        let one = counts[i];
        counts[i] = before;
        before += one;
    }
    totals[row] = before;
#else
    let row = workgroup_index(group);
    if row >= params.rows { return; }
    invocation = index;
    let run = (params.len + WORKGROUP_SIZE - 1u) / WORKGROUP_SIZE;
    let row_begin = params.first + row * params.len;
    let begin = row_begin + min(index * run, params.len);
    let end = row_begin + min((index + 1u) * run, params.len);
    var sum = 0u;
    for (var i = begin; i < end; i++) { sum += counts[i]; }
    var before = sum_before(sum);
    for (var i = begin; i < end; i++) {
        let one = counts[i];
        counts[i] = before;
        before += one;
    }
    if index == WORKGROUP_SIZE - 1u { totals[row] = before; }
#endif
}
