// What lanes of a tile hand on to each other: the sum of the row that each ends in. Rows come in order.
var<workgroup> wg_rows: array<u32, WORKGROUP_SIZE>;
var<workgroup> wg_tails: array<f32, WORKGROUP_SIZE>;

// Makes each tail the sum over all lanes up to this one that end in the same row: a segmented scan in the
// manner of P. Kogge and H. Stone (1973), always in the same order.
fn scan_tails(lane: u32, row: u32, tail: f32) -> f32 {
    var sum = tail;
    wg_rows[lane] = row;
    wg_tails[lane] = sum;
    for (var stride = 1u; stride < WORKGROUP_SIZE; stride *= 2u) {
        workgroupBarrier();
        if lane >= stride && wg_rows[lane - stride] == row {
            sum = wg_tails[lane - stride] + sum;
        }
        workgroupBarrier();
        wg_tails[lane] = sum;
    }
    workgroupBarrier();
    return sum;
}

// What the lanes before hand on to `row`; after the scan.
fn carried_into(lane: u32, row: u32) -> f32 {
    if lane > 0u && wg_rows[lane - 1u] == row {
        return wg_tails[lane - 1u];
    }
    return 0.0;
}
