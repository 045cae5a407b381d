// y = alpha A x + beta y at the speed of memory: LANES threads, a team, walk ROWS neighbouring rows
// together, so that each load of x serves all of them, then a tree joins their sums. `parts` workgroups share
// long rows in turn. Loads are vec4s with VECTORS, and those of UNROLL steps (2, or 4 with DEEP) are in
// flight before the first is used. Requires f16 where T is f16, subgroups with TWO_STAGE.
#import dense/gemv_result
#import op/add
#if TWO_STAGE
#import workgroup/reduce_two_stage
#endif

const LANES: u32 = 256u;
const TEAMS: u32 = WORKGROUP_SIZE / LANES;

#if VECTORS
alias Load = vec4<T>;
alias Lane = vec4<f32>;

fn total_of(x: Lane) -> f32 { return (x.x + x.y) + (x.z + x.w); }
#else
alias Load = T;
alias Lane = f32;

fn total_of(x: Lane) -> f32 { return x; }
#endif

@group(0) @binding(1) var<storage, read> a: array<Load>;
@group(0) @binding(2) var<storage, read> x: array<Load>;

// ROWS is written out, since dynamically indexed local arrays live in slow memory.
#if ROWS_4
const ROWS: u32 = 4u;
alias Acc = vec4<f32>;
struct Step { x: Load, a0: Load, a1: Load, a2: Load, a3: Load }
struct Sums { s0: Lane, s1: Lane, s2: Lane, s3: Lane }

fn load_step(rows: vec4<u32>, at: u32) -> Step {
    return Step(x[at], a[rows.x + at], a[rows.y + at], a[rows.z + at], a[rows.w + at]);
}

fn add_step(sums: Sums, step: Step) -> Sums {
    let f = Lane(step.x);
    return Sums(
        fma(Lane(step.a0), f, sums.s0),
        fma(Lane(step.a1), f, sums.s1),
        fma(Lane(step.a2), f, sums.s2),
        fma(Lane(step.a3), f, sums.s3),
    );
}

fn join(sums: Sums) -> Acc { return Acc(total_of(sums.s0), total_of(sums.s1), total_of(sums.s2), total_of(sums.s3)); }
#else
#if ROWS_2
const ROWS: u32 = 2u;
alias Acc = vec2<f32>;
struct Step { x: Load, a0: Load, a1: Load }
struct Sums { s0: Lane, s1: Lane }

fn load_step(rows: vec4<u32>, at: u32) -> Step { return Step(x[at], a[rows.x + at], a[rows.y + at]); }

fn add_step(sums: Sums, step: Step) -> Sums {
    let f = Lane(step.x);
    return Sums(fma(Lane(step.a0), f, sums.s0), fma(Lane(step.a1), f, sums.s1));
}

fn join(sums: Sums) -> Acc { return Acc(total_of(sums.s0), total_of(sums.s1)); }
#else
const ROWS: u32 = 1u;
alias Acc = f32;
struct Step { x: Load, a0: Load }
struct Sums { s0: Lane }

fn load_step(rows: vec4<u32>, at: u32) -> Step { return Step(x[at], a[rows.x + at]); }
fn add_step(sums: Sums, step: Step) -> Sums { return Sums(fma(Lane(step.a0), Lane(step.x), sums.s0)); }
fn join(sums: Sums) -> Acc { return total_of(sums.s0); }
#endif
#endif

#if DEEP
const UNROLL: u32 = 4u;
#else
const UNROLL: u32 = 2u;
#endif

#if !TWO_STAGE
var<workgroup> wg_acc: array<Acc, WORKGROUP_SIZE>;
#endif

// The sums of the lane over its columns of rows that begin at `rows`.
fn walk(rows: vec4<u32>, part: u32, lane: u32) -> Acc {
    var sums = Sums();
    var at = part * LANES * UNROLL + lane;
    while at + (UNROLL - 1u) * LANES < params.cols {
        let p = load_step(rows, at);
        let q = load_step(rows, at + LANES);
#if DEEP
        let r = load_step(rows, at + 2u * LANES);
        let s = load_step(rows, at + 3u * LANES);
        sums = add_step(add_step(add_step(add_step(sums, p), q), r), s);
#else
        sums = add_step(add_step(sums, p), q);
#endif
        at += LANES * UNROLL * params.parts;
    }
    if at < params.cols {
        // The last step, its loads in flight together: elements beyond the end are loaded from the end and do not
        // count.
        let p = load_step(rows, at);
#if DEEP
        let last = params.cols - 1u;
        let q = load_step(rows, min(at + LANES, last));
        let r = load_step(rows, min(at + 2u * LANES, last));
        sums = add_step(sums, p);
        if at + LANES < params.cols { sums = add_step(sums, q); }
        if at + 2u * LANES < params.cols { sums = add_step(sums, r); }
#else
        sums = add_step(sums, p);
#endif
    }
    return join(sums);
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn gemv_rows(
#put thread_builtins(invocation, TWO_STAGE)
) {
    let tile = workgroup_index(group);
    let first = tile / params.parts * (TEAMS * ROWS);
    let part = tile % params.parts;
    if first >= params.rows { return; }
    let lane = invocation % LANES;
    let row = first + invocation / LANES * ROWS;
    // Rows beyond the last read the last, and their sums are dropped.
    let rows = min(vec4(row) + vec4(0u, 1u, 2u, 3u), vec4(params.rows - 1u));
    let acc = walk(vec4(params.origin) + rows * params.ld, part, lane);
#if TWO_STAGE
    let total = workgroup_reduce(acc, invocation, sub_lane, sub_size, sub_id, sub_count);
#else
    wg_acc[invocation] = acc;
    for (var stride = LANES / 2u; stride > 0u; stride /= 2u) {
        workgroupBarrier();
        if lane < stride { wg_acc[invocation] = op_combine(wg_acc[invocation], wg_acc[invocation + stride]); }
    }
    let total = wg_acc[invocation];
#endif
    if lane == 0u && row < params.rows {
        let at = params.first_row + row;
#if ROWS_4
        put(at, part, total.x);
        if row + 1u < params.rows { put(at + 1u, part, total.y); }
        if row + 2u < params.rows { put(at + 2u, part, total.z); }
        if row + 3u < params.rows { put(at + 3u, part, total.w); }
#else
#if ROWS_2
        put(at, part, total.x);
        if row + 1u < params.rows { put(at + 1u, part, total.y); }
#else
        put(at, part, total);
#endif
#endif
    }
}
