// Hands each element to `emit`, with the kept elements before it; `before` is the count before the subgroup's run.
fn emit_tile(items: Items, before: u32, sub_lane: u32) {
    var run = before;
    let lower = below(sub_lane);
    for (var j = 0u; j < ITEMS; j++) {
        let at = items.first + j * items.stride;
        let kept = ((items.kept >> j) & 1u) != 0u;
        let mask = subgroupBallot(kept);
        if at < params.n {
            emit(at, items.bits[j / 4u][j % 4u], run + ones(mask & lower), kept);
        }
        run += ones(mask);
    }
}
