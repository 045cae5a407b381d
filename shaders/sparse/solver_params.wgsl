// Parameters, device state and vector sums of the solvers. Each workgroup stores its partial sums in `partials`, and
// each workgroup of the next kernel adds up all of them in the same order. Sums of dots come first, later ones after
// `parts`.
#import op/add as op
#import workgroup/index
#import workgroup/reduce_sequential

const WORKGROUP_SIZE: u32 = 256u;
alias Acc = vec4<f32>;

struct Params {
    n: u32,        // elements of a vector
    parts: u32,    // workgroups that share a vector
    slots: u32,    // residuals in the state
    limit: u32,    // maximum number of iterations
    relative: f32, // tolerances; squared for conjugate gradients
    absolute: f32,
    damping: f32,
}
@group(0) @binding(0) var<uniform> params: Params;

// Words that the host reads.
const STATUS: u32 = 0u;
const ITERATIONS: u32 = 1u;
const RESIDUAL: u32 = 2u;
const SCALE: u32 = 3u; // the square of the norm of b
const VALUE: u32 = 4u; // the eigenvalue, or p A p where it stopped
const ROW: u32 = 5u;   // n minus the first row with a diagonal element that is not positive; 0 if none
// Words that only kernels read: STATUS at the start of the iteration, and results since.
const BEFORE: u32 = 6u;
const FOUND: u32 = 7u;
const THRESHOLD: u32 = 8u;
const RZ: u32 = 9u;
const RZ_BEFORE: u32 = 10u;
const HISTORY: u32 = 16u;

const RUNNING: u32 = 0u;
const CONVERGED: u32 = 1u;
const LIMIT: u32 = 2u;
const NOT_POSITIVE: u32 = 3u;
const NOT_FINITE: u32 = 4u;
const DIAGONAL: u32 = 5u;
const VANISHED: u32 = 6u;
const TOO_SMALL: u32 = 7u;

@group(0) @binding(1) var<storage, read_write> partials: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> state: array<u32>;

fn is_finite(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u;
}

// The sum of all partials from `first` on, in every lane.
fn total_of(first: u32, lane: u32) -> Acc {
    var sum = op_identity();
    for (var i = lane; i < params.parts; i += WORKGROUP_SIZE) {
        sum = op_combine(sum, partials[first + i]);
    }
    workgroup_reduce(sum, lane);
    workgroupBarrier();
    let total = wg_acc[0];
    workgroupBarrier();
    return total;
}

// Ends an iteration with this residual. One thread calls it.
fn judge(residual: f32, threshold: f32) {
    let iteration = state[ITERATIONS];
    state[ITERATIONS] = iteration + 1u;
    state[HISTORY + iteration % params.slots] = bitcast<u32>(residual);
    state[RESIDUAL] = bitcast<u32>(residual);
    var status = select(RUNNING, LIMIT, iteration + 1u >= params.limit);
    if !is_finite(residual) {
        status = NOT_FINITE;
    } else if residual <= threshold {
        status = CONVERGED;
    }
    state[STATUS] = status;
}
