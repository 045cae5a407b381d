// Sorts one entry of each thread: K. Batcher's bitonic network (1968). Not stable.
//
//     fn workgroup_sort(x: Entry, lane: u32) -> Entry
//
// Lane l gets the entry that l others go before.
//
// You declare  WORKGROUP_SIZE, a power of two; `alias Entry`, any type, such as a key with a value;
//              `fn goes_before(a: Entry, b: Entry) -> bool`, a strict order.
// `lane`       is local_invocation_index.
// Costs        WORKGROUP_SIZE entries of workgroup memory; with n = log2(WORKGROUP_SIZE), n (n + 1) + 1 barriers.
// Call it      in uniform control flow, as often as you like.
var<workgroup> wg_sort: array<Entry, WORKGROUP_SIZE>;

fn workgroup_sort(x: Entry, lane: u32) -> Entry {
    var mine = x;
    for (var run = 2u; run <= WORKGROUP_SIZE; run *= 2u) {
        for (var apart = run / 2u; apart > 0u; apart /= 2u) {
            workgroupBarrier();
            wg_sort[lane] = mine;
            workgroupBarrier();
            let other = wg_sort[lane ^ apart];
            // Runs are in order and in reverse order by turns; the last one is in order.
            let is_first = (lane & apart) == 0u;
            let in_order = (lane & run) == 0u || run == WORKGROUP_SIZE;
            // Equal entries stay where they are.
            let other_first = goes_before(other, mine);
            let mine_first = goes_before(mine, other);
            if select(mine_first, other_first, is_first == in_order) { mine = other; }
        }
    }
    // The next call may write only when all have read.
    workgroupBarrier();
    return mine;
}
