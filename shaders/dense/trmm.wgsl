// C = alpha op(A) B for a triangular A, as far as blocks of BLOCK rows on A's diagonal go; products add the rest.
// A thread computes an element of C. Elements across are those that lie side by side in memory.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const BLOCK: u32 = 64u;

struct Params {
    // The side of A, and the rows or columns of B that it is applied to.
    n: u32, others: u32,
    // From one row of op(A) to the next and from one column, turned if A stands on the right.
    a_row: u32, a_column: u32,
    // From one row that A is applied to to the next, and from one of the others.
    b_row: u32, b_other: u32, c_row: u32, c_other: u32,
    // A stands on the right; op(A), turned if so, is upper; the diagonal is 1.
    right: u32, upper: u32, unit: u32, alpha: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read_write> c: array<f32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn trmm(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let index = workgroup_index(workgroup) * WORKGROUP_SIZE + local;
    if index >= params.n * params.others { return; }
    let across = select(params.others, params.n, params.right == 1u);
    let place = vec2(index / across, index % across);
    let row = select(place.x, place.y, params.right == 1u);
    let other = select(place.y, place.x, params.right == 1u);
    let block = row / BLOCK * BLOCK;
    let begin = select(block, row, params.upper == 1u);
    let end = select(row + 1u, min(block + BLOCK, params.n), params.upper == 1u);
    var sum = 0.0;
    for (var i = begin; i < end; i++) {
        var factor = 1.0;
        if i != row || params.unit == 0u { factor = a[row * params.a_row + i * params.a_column]; }
        sum = fma(factor, b[i * params.b_row + other * params.b_other], sum);
    }
    c[row * params.c_row + other * params.c_other] = params.alpha * sum;
}
