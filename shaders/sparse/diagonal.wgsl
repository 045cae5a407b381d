// The diagonal of a matrix in any format: its product with ones, once all other entries are 0. One thread per slot,
// which searches its row among `ptrs` if no list or rule gives it.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    rows: u32,
    places: u32,
    segments: u32, // rows, diagonals or slices that ptrs delimit
    slice: u32,
}
@group(0) @binding(0) var<uniform> params: Params;

#if ENTRIES
#import sparse/spmv_values

const COL_BINDING: u32 = 1u;
@group(0) @binding(COL_BINDING) var<storage, read> col_idxs: array<u32>;
@group(0) @binding(COL_BINDING + 2u) var<storage, read_write> kept: array<f32>;
#if LISTED
@group(0) @binding(1) var<storage, read> row_idxs: array<u32>;
#endif
#if ORDERED
@group(0) @binding(1) var<storage, read> row_order: array<u32>;
#endif
#if SEARCHED
const PTRS_BINDING: u32 = 1u;
@group(0) @binding(PTRS_BINDING) var<storage, read> ptrs: array<u32>;

// The segment of slot `at`: the last non-empty one that starts at or before it.
fn segment_of(at: u32) -> u32 {
    var low = 0u;
    var high = params.segments;
    while low + 1u < high {
        let middle = (low + high) / 2u;
        if ptrs[middle] <= at {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}
#endif

fn row_of(at: u32) -> u32 {
#if LISTED
    return row_idxs[at];
#else
#if SEARCHED
    let segment = segment_of(at);
#if ORDERED
#if SLICES
    let place = segment * params.slice + (at - ptrs[segment]) % params.slice;
#else
    let place = at - ptrs[segment];
#endif
    // Unchecked lists may point anywhere.
    return row_order[min(place, arrayLength(&row_order) - 1u)];
#else
    return segment;
#endif
#else
    return at % params.rows;
#endif
#endif
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn diagonal_keep(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if at < params.places {
        var element = 0.0;
        if col_idxs[at] < params.rows && row_of(at) == col_idxs[at] {
            element = value(at);
        }
        kept[at] = element;
    }
}
#else
@group(0) @binding(1) var<storage, read_write> ones: array<f32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn diagonal_fill(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if row < params.rows {
        ones[row] = 1.0;
    }
}

@group(0) @binding(1) var<storage, read> diagonal: array<f32>;
@group(0) @binding(2) var<storage, read_write> inverse: array<f32>;
@group(0) @binding(3) var<storage, read_write> state: array<atomic<u32>>;
const ROW: u32 = 5u; // as in solver_params

// The inverse of each element. The state records an element that is not positive.
@compute @workgroup_size(WORKGROUP_SIZE)
fn diagonal_invert(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let row = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if row >= params.rows {
        return;
    }
    let element = diagonal[row];
    if !(element > 0.0) {
        atomicMax(&state[ROW], params.rows - row);
    }
    inverse[row] = 1.0 / element;
}
#endif
