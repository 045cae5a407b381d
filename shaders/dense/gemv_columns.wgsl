// y = alpha A^T x + beta y at the speed of memory: LANES threads, a team, own neighbouring columns (a
// vec4 each with VECTORS); the teams of a workgroup take eight rows at a time in turn, with eight loads in
// flight, and add in workgroup memory. A workgroup sums one of `parts` contiguous parts of the rows for
// LANES columns. Requires f16 where T is f16.
#import dense/gemv_result

const LANES: u32 = 64u;
const TEAMS: u32 = WORKGROUP_SIZE / LANES;
const UNROLL: u32 = 8u;

#if VECTORS
alias Load = vec4<T>;
alias Lane = vec4<f32>;
#else
alias Load = T;
alias Lane = f32;
#endif

@group(0) @binding(1) var<storage, read> a: array<Load>;
@group(0) @binding(2) var<storage, read> x: array<T>;

var<workgroup> wg_sums: array<Lane, WORKGROUP_SIZE>;

fn add(sum: Lane, value: Load, factor: T) -> Lane { return fma(Lane(value), Lane(f32(factor)), sum); }

// Sums the column `col` over the rows of the team in `begin .. end`.
fn walk(col: u32, begin: u32, end: u32, team: u32) -> Lane {
    var sum = Lane(0.0);
    var row = begin + team * UNROLL;
    while row + UNROLL - 1u < end {
        let at = params.origin + row * params.ld + col;
        let ld = params.ld;
        let a0 = a[at];
        let a1 = a[at + ld];
        let a2 = a[at + 2u * ld];
        let a3 = a[at + 3u * ld];
        let a4 = a[at + 4u * ld];
        let a5 = a[at + 5u * ld];
        let a6 = a[at + 6u * ld];
        let a7 = a[at + 7u * ld];
        let i = params.first_row + row;
        sum = add(sum, a0, x[i]);
        sum = add(sum, a1, x[i + 1u]);
        sum = add(sum, a2, x[i + 2u]);
        sum = add(sum, a3, x[i + 3u]);
        sum = add(sum, a4, x[i + 4u]);
        sum = add(sum, a5, x[i + 5u]);
        sum = add(sum, a6, x[i + 6u]);
        sum = add(sum, a7, x[i + 7u]);
        row += TEAMS * UNROLL;
    }
    // At most one step of the part is incomplete: the last of its team.
    for (; row < end; row++) {
        sum = add(sum, a[params.origin + row * params.ld + col], x[params.first_row + row]);
    }
    return sum;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn gemv_columns(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) invocation: u32) {
    let tile = workgroup_index(group);
    let strips = (params.cols - 1u) / LANES + 1u;
    let part = tile / strips;
    if part >= params.parts { return; }
    let team = invocation / LANES;
    let col = tile % strips * LANES + invocation % LANES;
    let begin = part * params.part_len;
    let end = min(begin + params.part_len, params.rows);
    // Lanes beyond the last column walk it too, and their sums are dropped.
    let sum = walk(min(col, params.cols - 1u), begin, end, team);
    wg_sums[invocation] = sum;
    for (var teams = TEAMS / 2u; teams > 0u; teams /= 2u) {
        workgroupBarrier();
        if team < teams { wg_sums[invocation] += wg_sums[invocation + teams * LANES]; }
    }
    if team == 0u && col < params.cols {
        let total = wg_sums[invocation];
#if VECTORS
        put(4u * col, part, total.x);
        put(4u * col + 1u, part, total.y);
        put(4u * col + 2u, part, total.z);
        put(4u * col + 3u, part, total.w);
#else
        put(col, part, total);
#endif
    }
}
