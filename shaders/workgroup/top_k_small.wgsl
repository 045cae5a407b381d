// The first TOP_K entries of an order, such as the largest values of a row.
//
//     fn workgroup_top_k(x: Entry, lane: u32) -> Entry
//     fn workgroup_top_k_joined(a: Entry, b: Entry, lane: u32) -> Entry
//
//     fn top_k_insert(list: ptr<function, array<Entry, TOP_K>>, x: Entry)
//     fn workgroup_top_k_of_lists(list: ptr<function, array<Entry, TOP_K>>, lane: u32) -> Entry
//
// `workgroup_top_k` takes one entry of each thread; lane l < TOP_K gets the entry that l others go before, other lanes
// get an entry without meaning. `workgroup_top_k_joined` joins two such results. For a row that is longer than the
// workgroup each thread inserts its entries into a list of its own, which it fills at first with entries that all
// others go before; `workgroup_top_k_of_lists` joins the lists.
//
// You declare  WORKGROUP_SIZE and TOP_K, powers of two, TOP_K <= WORKGROUP_SIZE; `alias Entry`, any type, such as a
// value
//              with its index; `fn goes_before(a: Entry, b: Entry) -> bool`, a strict order.
// `lane`       is local_invocation_index.
// Costs        WORKGROUP_SIZE entries of workgroup memory. With k = log2(TOP_K) and h = log2(WORKGROUP_SIZE / TOP_K),
//              workgroup_top_k has k (k + 1) + 2 h (k + 1) + 1 barriers, workgroup_top_k_joined 2 k + 3. Lists take as
//              many of both and two more as a thread has entries among the first, and one.
// Call them    in uniform control flow, as often as you like.
var<workgroup> wg_top: array<Entry, WORKGROUP_SIZE>;

// The entry that lanes `lane` and `lane ^ apart` of a block leave to this lane: the earlier one goes to `first`.
fn top_k_exchanged(x: Entry, apart: u32, lane: u32, first: bool) -> Entry {
    workgroupBarrier();
    wg_top[lane] = x;
    workgroupBarrier();
    let other = wg_top[lane ^ apart];
    if select(goes_before(x, other), goes_before(other, x), first) { return other; }
    return x;
}

// A block whose entries rise and then fall becomes one in order.
fn top_k_merged(x: Entry, lane: u32) -> Entry {
    var mine = x;
    for (var apart = TOP_K / 2u; apart > 0u; apart /= 2u) {
        mine = top_k_exchanged(mine, apart, lane, (lane & apart) == 0u);
    }
    return mine;
}

fn workgroup_top_k(x: Entry, lane: u32) -> Entry {
    var mine = x;
    // Each block of TOP_K lanes sorts its entries.
    for (var run = 2u; run <= TOP_K; run *= 2u) {
        for (var apart = run / 2u; apart > 0u; apart /= 2u) {
            let in_order = (lane & run) == 0u || run == TOP_K;
            mine = top_k_exchanged(mine, apart, lane, ((lane & apart) == 0u) == in_order);
        }
    }
    // Two blocks become one: of entry i of the one and entry TOP_K - 1 - i of the other, the earlier. Lanes behind the
    // blocks that are left work on copies, which nobody reads.
    for (var blocks = WORKGROUP_SIZE / TOP_K; blocks > 1u; blocks /= 2u) {
        workgroupBarrier();
        wg_top[lane] = mine;
        workgroupBarrier();
        let pair = lane / TOP_K % (blocks / 2u) * 2u * TOP_K;
        let a = wg_top[pair + lane % TOP_K];
        let b = wg_top[pair + 2u * TOP_K - 1u - lane % TOP_K];
        mine = a;
        if goes_before(b, a) { mine = b; }
        mine = top_k_merged(mine, lane);
    }
    // The next call may write only when all have read.
    workgroupBarrier();
    return mine;
}

fn workgroup_top_k_joined(a: Entry, b: Entry, lane: u32) -> Entry {
    workgroupBarrier();
    if lane < TOP_K { wg_top[lane] = b; }
    workgroupBarrier();
    let other = wg_top[TOP_K - 1u - lane % TOP_K];
    var mine = a;
    if goes_before(other, a) { mine = other; }
    mine = top_k_merged(mine, lane);
    workgroupBarrier();
    return mine;
}

fn top_k_insert(list: ptr<function, array<Entry, TOP_K>>, x: Entry) {
    var next = x;
    for (var i = 0u; i < TOP_K; i++) {
        let held = (*list)[i];
        if goes_before(next, held) {
            (*list)[i] = next;
            next = held;
        }
    }
}

// The first of the entries at hand, and the last of those that were found.
var<workgroup> wg_ends: array<Entry, 2>;

fn workgroup_top_k_of_lists(list: ptr<function, array<Entry, TOP_K>>, lane: u32) -> Entry {
    var best = workgroup_top_k((*list)[0], lane);
    for (var i = 1u; i < TOP_K; i++) {
        let more = workgroup_top_k((*list)[i], lane);
        if lane == 0u { wg_ends[0] = more; }
        if lane == TOP_K - 1u { wg_ends[1] = best; }
        let ends = workgroupUniformLoad(&wg_ends);
        // Nor do those that follow in the lists.
        if !goes_before(ends[0], ends[1]) { break; }
        best = workgroup_top_k_joined(best, more, lane);
    }
    return best;
}
