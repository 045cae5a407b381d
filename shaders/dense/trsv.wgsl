// Solves op(A) x = b, in place, by blocks of unknowns. With SOLVES one workgroup solves a block by substitution, a
// thread for each unknown; otherwise the share of a solved block is subtracted from the unknowns that it reaches.
#if SOLVES
#import dense/band_matrix

const BLOCK: u32 = 64u;

@group(0) @binding(2) var<storage, read_write> y: array<f32>;

// The coefficients of the block, a triangle without gaps, and its unknowns.
var<workgroup> wg_a: array<f32, BLOCK * (BLOCK + 1u) / 2u>;
var<workgroup> wg_solved: array<f32, BLOCK>;

// The unknown that is solved after `step` others.
fn unknown(step: u32) -> u32 {
    return select(params.outputs - 1u - step, params.first_output + step, params.forward != 0u);
}

@compute @workgroup_size(BLOCK)
fn trsv_solve(@builtin(local_invocation_index) lane: u32) {
    let count = params.outputs - params.first_output;
    for (var round = 0u; round < count; round++) {
        // Neighbouring lanes read neighbouring elements.
#if BY_COLUMNS
        let equation = lane;
        let step = round;
        let place = at(unknown(min(step, count - 1u)), unknown(min(equation, count - 1u)));
#else
        let equation = round;
        let step = lane;
        let place = at(unknown(min(equation, count - 1u)), unknown(min(step, count - 1u)));
#endif
        if step <= equation && equation < count {
            var coefficient = 0.0;
            if equation - step <= params.reach && (params.unit == 0u || step < equation) { coefficient = a[place]; }
            wg_a[equation * (equation + 1u) / 2u + step] = coefficient;
        }
    }
    let mine = unknown(min(lane, count - 1u));
    // Only the owner of an unknown touches it, for it writes the unknown in place.
    var value = 0.0;
    if lane < count { value = y[mine]; }
    let line = lane * (lane + 1u) / 2u;
    workgroupBarrier();
    for (var step = 0u; step < count; step++) {
        if lane == step {
            if params.unit == 0u { value /= wg_a[line + step]; }
            wg_solved[step] = value;
        }
        workgroupBarrier();
        if lane > step && lane < count { value -= wg_a[line + step] * wg_solved[step]; }
    }
    workgroupBarrier();
    if lane < count { y[mine] = value; }
}
#else
#import dense/band_product

@compute @workgroup_size(WORKGROUP_SIZE)
fn trsv_update(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    band_product(group, lane);
}
#endif
