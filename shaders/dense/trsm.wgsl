// Solves a block of a triangular system: op(A) X = alpha B for up to BLOCK unknowns, by substitution. X takes the place
// of B, and with WORK goes to `work` as well, for the products that follow.
// A workgroup solves COLUMNS columns of X. A thread has ROWS rows of one column in registers: those of its group and
// GROUPS apart. Once an unknown is known, all rows below subtract its share. Strides may be negative, modulo 2^32.
#import workgroup/index

const BLOCK: u32 = 64u;
const COLUMNS: u32 = 32u;
const GROUPS: u32 = 8u;
const ROWS: u32 = 8u;
// Rows of a thread that one load of A serves.
const PANEL: u32 = 4u;
const WORKGROUP_SIZE: u32 = COLUMNS * GROUPS;

struct Params {
    // Unknowns and columns.
    n: u32, columns: u32,
    // The first element of A, and from one unknown and one equation to the next.
    a_at: u32, a_unknown: u32, a_equation: u32,
    // The same of B and X.
    b_at: u32, b_row: u32, b_column: u32,
    work_at: u32, work_row: u32, work_column: u32,
    // The diagonal is 1.
    unit: u32, alpha: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read_write> b: array<f32>;
#if WORK
@group(0) @binding(3) var<storage, read_write> work: array<f32>;
#endif

// Coefficients of a panel: all equations of an unknown side by side.
var<workgroup> wg_a: array<f32, PANEL * GROUPS * BLOCK>;
// The latest two unknowns of each column.
var<workgroup> wg_x: array<f32, 2u * COLUMNS>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn trsm(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let first = workgroup_index(workgroup) * COLUMNS;
    if first >= params.columns { return; }
    let lane = local % COLUMNS;
    let group = local / COLUMNS;
    let column = first + lane;
    let inside = column < params.columns;
#for k in ROWS
    let row_{k} = {k}u * GROUPS + group;
    var b_{k} = 0.0;
    if inside && row_{k} < params.n {
        b_{k} = params.alpha * b[params.b_at + row_{k} * params.b_row + column * params.b_column];
    }
#end
#for k in ROWS
#if k % PANEL == 0
    workgroupBarrier();
    for (var i = local; i < PANEL * GROUPS * BLOCK; i += WORKGROUP_SIZE) {
        let equation = i % BLOCK;
        let unknown = {k}u * GROUPS + i / BLOCK;
        var coefficient = 0.0;
        if equation < params.n && equation + 1u > unknown + params.unit {
            coefficient = a[params.a_at + unknown * params.a_unknown + equation * params.a_equation];
        }
        wg_a[i] = coefficient;
    }
    workgroupBarrier();
#endif
    for (var g = 0u; g < GROUPS; g++) {
        let unknown = {k}u * GROUPS + g;
        if unknown >= params.n { break; }
        let line = ({k % PANEL}u * GROUPS + g) * BLOCK;
        let slot = g % 2u * COLUMNS + lane;
        if g == group {
            if params.unit == 0u { b_{k} /= wg_a[line + unknown]; }
            wg_x[slot] = b_{k};
        }
        workgroupBarrier();
        let x = wg_x[slot];
        if g < group { b_{k} -= wg_a[line + row_{k}] * x; }
#for i in (k + 1)..ROWS
        b_{i} -= wg_a[line + row_{i}] * x;
#end
    }
#end
#for k in ROWS
    if inside && row_{k} < params.n {
        b[params.b_at + row_{k} * params.b_row + column * params.b_column] = b_{k};
#if WORK
        work[params.work_at + row_{k} * params.work_row + column * params.work_column] = b_{k};
#endif
    }
#end
}
