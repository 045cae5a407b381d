// Hands each element to `emit`, with the kept elements before it; `before` is the count before the subgroup's run.
// Also what lies beyond the end, which is not kept.
fn emit_tile(items: Items, before: u32, sub_lane: u32) {
    let lower = below(sub_lane);
    var run = before;
    // One by one: in a loop the elements would have to lie in memory.
#for i in QUADS
    run = emit_four(items, {i}u, items.bits[{i}], run, lower);
#end
}

fn emit_four(items: Items, quad: u32, bits: vec4<u32>, before: u32, lower: Lanes) -> u32 {
    let at = places(items, quad);
    let kept = items.kept >> (4u * quad);
    var run = before;
    run = emit_one(at.x, bits.x, (kept & 1u) != 0u, run, lower);
    run = emit_one(at.y, bits.y, (kept & 2u) != 0u, run, lower);
    run = emit_one(at.z, bits.z, (kept & 4u) != 0u, run, lower);
    return emit_one(at.w, bits.w, (kept & 8u) != 0u, run, lower);
}

fn emit_one(at: u32, bits: u32, kept: bool, before: u32, lower: Lanes) -> u32 {
    let mask = ballot(kept);
    emit(at, bits, before + ones(mask & lower), kept);
    return before + ones(mask);
}
