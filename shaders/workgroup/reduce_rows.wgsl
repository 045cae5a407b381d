// The sum, or the largest, of the values of each row of a workgroup; every lane of the row gets it.
//
//     fn row_total(four: vec4<f32>, largest: bool, slot: u32, lane: u32, sub_size: u32) -> f32
//     #put row_builtins()     the parameters of an entry point: `group`, and who the thread is
//     #put row_lane()         in its body, `lane` and `sub_size`: lanes of a subgroup are neighbours
//
// The importer declares WORKGROUP_SIZE and LANES, a power of two that divides it: LANES neighbours share a row. It
// calls `row_total` at most once with each slot below SLOTS, so that nothing is overwritten that is still read.
// `sub_size` counts with SUBGROUPS alone. ACROSS: more lanes may share a row than a subgroup has.
#if SUBGROUPS
enable subgroups;
#endif

#block row_builtins()
    @builtin(workgroup_id) group: vec3<u32>,
#if SUBGROUPS
    @builtin(subgroup_invocation_id) sub_lane: u32,
    @builtin(subgroup_size) sub_size: u32,
    @builtin(subgroup_id) sub_id: u32,
#else
    @builtin(local_invocation_index) invocation: u32,
#endif
#end

#block row_lane()
#if SUBGROUPS
    let lane = sub_id * sub_size + sub_lane;
#else
    let lane = invocation;
    let sub_size = 1u;
#endif
#end

const SLOTS: u32 = 2u;

fn combine(a: f32, b: f32, largest: bool) -> f32 { return select(a + b, max(a, b), largest); }
fn combine4(a: vec4<f32>, b: vec4<f32>, largest: bool) -> vec4<f32> { return select(a + b, max(a, b), largest); }

#if SUBGROUPS
#if ACROSS
var<workgroup> wg_totals: array<f32, SLOTS * WORKGROUP_SIZE>;
#endif
#else
var<workgroup> wg_totals: array<f32, SLOTS * WORKGROUP_SIZE>;
#endif

fn row_total(four: vec4<f32>, largest: bool, slot: u32, lane: u32, sub_size: u32) -> f32 {
    let half = combine(combine(four.x, four.y, largest), combine(four.z, four.w, largest), largest);
#if SUBGROUPS
    let size = min(LANES, sub_size);
    var total = half;
    for (var mask = size / 2u; mask > 0u; mask /= 2u) {
        total = combine(total, subgroupShuffleXor(total, mask), largest);
    }
#if ACROSS
    let base = slot * WORKGROUP_SIZE;
    if lane % size == 0u {
        wg_totals[base + lane / size] = total;
    }
    workgroupBarrier();
    let count = LANES / size;
    let first = base + lane / LANES * count;
    total = wg_totals[first];
    for (var i = 1u; i < count; i++) { total = combine(total, wg_totals[first + i], largest); }
#endif
    return total;
#else
    let mine = slot * WORKGROUP_SIZE + lane;
    let column = lane % LANES;
    wg_totals[mine] = half;
    for (var stride = LANES / 2u; stride > 0u; stride /= 2u) {
        workgroupBarrier();
        if column < stride { wg_totals[mine] = combine(wg_totals[mine], wg_totals[mine + stride], largest); }
    }
    workgroupBarrier();
    return wg_totals[mine - column];
#endif
}
