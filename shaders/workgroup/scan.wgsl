// Prefixes of one value of each thread: P. Kogge and H. Stone (1973).
//
//     struct Prefix { before: Acc, through: Acc, total: Acc }
//     fn workgroup_scan(x: Acc, lane: u32) -> Prefix
//
// `before` combines the values of all lanes before this one (the exclusive scan), `through` also its own (the inclusive
// scan), `total` all values.
//
// You declare  WORKGROUP_SIZE, any size; `alias Acc`, any type; `fn op_identity() -> Acc` and
//              `fn op_combine(a: Acc, b: Acc) -> Acc`, associative, such as `#import op/add as op`.
// `lane`       is local_invocation_index.
// Order        operands are combined in the order of lanes.
// Costs        WORKGROUP_SIZE values of workgroup memory, 2 log2(WORKGROUP_SIZE) + 2 barriers.
// Call it      in uniform control flow, as often as you like.
struct Prefix { before: Acc, through: Acc, total: Acc }

var<workgroup> wg_scan: array<Acc, WORKGROUP_SIZE>;

fn workgroup_scan(x: Acc, lane: u32) -> Prefix {
    var mine = x;
    wg_scan[lane] = mine;
    for (var stride = 1u; stride < WORKGROUP_SIZE; stride *= 2u) {
        workgroupBarrier();
        if lane >= stride { mine = op_combine(wg_scan[lane - stride], mine); }
        workgroupBarrier();
        wg_scan[lane] = mine;
    }
    workgroupBarrier();
    var before = op_identity();
    if lane > 0u { before = wg_scan[lane - 1u]; }
    let total = wg_scan[WORKGROUP_SIZE - 1u];
    // The next call may write only when all have read.
    workgroupBarrier();
    return Prefix(before, mine, total);
}
