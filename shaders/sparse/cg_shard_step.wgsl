// Conjugate gradients on shards: one workgroup adds up a rank's partial sums of r r and w r, with MAIL also the sums of the
// other ranks, and finds the lengths of the next step (A. T. Chronopoulos and C. W. Gear, 1989).
#import op/add as op
#import sparse/cg_shard_state
#import workgroup/reduce
#if MAIL
#import sparse/cg_shard_mail
#endif

const WORKGROUP_SIZE: u32 = 256u;
const SLOT: u32 = 16u;         // words that a rank's sums take
const MAX_RANKS: u32 = 64u;
alias Acc = vec2<f32>;

struct Params { parts: u32, ranks: u32, rank: u32, half: u32, patience: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> partials: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> state: array<u32>;
#if MAIL
@group(0) @binding(3) var<storage, read_write> turn: array<u32>;
@group(0) @binding(4) var<storage, read_write> mail: array<atomic<u32>>;
var<workgroup> wg_sums: array<vec2<f32>, MAX_RANKS>;
var<workgroup> wg_arrived: array<u32, MAX_RANKS>;
#endif

fn is_finite(x: f32) -> bool { return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u; }

fn advance(square: f32, along: f32) {
    let count = state[COUNT];
    state[HISTORY + count % HISTORY_LEN] = bitcast<u32>(square);
    state[COUNT] = count + 1u;
    if !is_finite(square) {
        state[STATUS] = NOT_FINITE;
        return;
    }
    if square <= bitcast<f32>(state[THRESHOLD]) {
        state[STATUS] = CONVERGED;
        return;
    }
    if state[LEFT] == 0u {
        state[STATUS] = LIMIT;
        return;
    }
    var beta = 0.0;
    var curvature = along;
    if count > 0u {
        beta = square / bitcast<f32>(state[OLD]);
        curvature -= beta * (square / bitcast<f32>(state[ALPHA]));
    }
    state[CURVATURE] = bitcast<u32>(curvature);
    if !is_finite(curvature) {
        state[STATUS] = NOT_FINITE;
        return;
    }
    if curvature <= 0.0 {
        state[STATUS] = NOT_POSITIVE;
        return;
    }
    state[ALPHA] = bitcast<u32>(square / curvature);
    state[BETA] = bitcast<u32>(beta);
    state[OLD] = bitcast<u32>(square);
    state[LEFT] -= 1u;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn cg_shard_step(@builtin(local_invocation_index) lane: u32) {
    var sum = op_identity();
    for (var i = lane; i < params.parts; i += WORKGROUP_SIZE) { sum += partials[i]; }
    var total = workgroup_reduce(sum, lane);
    let going = state[STATUS] == GOING;
#if MAIL
    let now = turn[0];
    let slots = (now & 1u) * params.half;
    if lane == 0u && going {
        let at = slots + SLOT * params.rank;
        mail_post(at, 1u, bitcast<u32>(total.x), bitcast<u32>(total.y), 0u, now);
    }
    if lane < params.ranks {
        var words = MailWords(bitcast<u32>(total.x), bitcast<u32>(total.y), 0u, true);
        if lane != params.rank && going {
            let at = slots + SLOT * lane;
            words = mail_read(at, 1u, now);
            for (var i = 0u; i < params.patience && !words.whole; i++) { words = mail_read(at, 1u, now); }
        }
        wg_sums[lane] = vec2<f32>(bitcast<f32>(words.a), bitcast<f32>(words.b));
        wg_arrived[lane] = select(0u, 1u, words.whole);
    }
    storageBarrier();
    workgroupBarrier();
    if lane == 0u && going {
        // In the order of ranks, so that all get the same bits.
        total = op_identity();
        var all_there = true;
        for (var i = 0u; i < params.ranks; i++) {
            total += wg_sums[i];
            all_there = all_there && wg_arrived[i] == 1u;
        }
        turn[0] = now + 1u;
        if !all_there {
            state[STATUS] = LATE;
            return;
        }
    }
#endif
    if lane == 0u && going { advance(total.x, total.y); }
}
