// y = alpha op(A) x + beta y for a band or a triangle; IN_PLACE x is y. A workgroup makes SIDE neighbouring results,
// from tiles of SIDE x SIDE elements: those stored in their own rows (BY_ROWS) with a lane for each column, those at
// mirrored places (BY_COLUMNS) with a lane for each row, so that neighbours read neighbours. With SPLIT `parts`
// workgroups share the tiles of a sum, which go to `partial`. The importer calls band_product.
#import dense/band_matrix
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const SIDE: u32 = 32u;
const TEAMS: u32 = WORKGROUP_SIZE / SIDE;
const ROWS: u32 = SIDE / TEAMS;

#if IN_PLACE
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

fn term(j: u32) -> f32 { return y[j]; }
#else
@group(0) @binding(2) var<storage, read> x: array<f32>;

fn term(j: u32) -> f32 { return x[j]; }
#endif

#if SPLIT
@group(0) @binding(3) var<storage, read_write> partial: array<f32>;

fn put(i: u32, part: u32, sum: f32) { partial[part * params.outputs + i] = sum; }
#else
#if !IN_PLACE
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
#endif

fn put(i: u32, part: u32, sum: f32) {
    var value = params.alpha * sum;
    if params.read_y != 0u { value += params.beta * y[i]; }
    y[i] = value;
}
#endif

// The diagonal is not read if it is 1.
fn product(p: u32, q: u32, j: u32) -> f32 {
    if params.unit != 0u && p == q { return term(j); }
    return a[at(p, q)] * term(j);
}

var<workgroup> wg_rows: array<f32, SIDE * SIDE>;
var<workgroup> wg_columns: array<f32, WORKGROUP_SIZE>;

fn band_product(group: vec3<u32>, local: u32) {
    let index = workgroup_index(group);
    let part = index % params.parts;
    let first = params.first_output + index / params.parts * SIDE;
    if first >= params.outputs { return; }
    let last = min(first + SIDE, params.outputs) - 1u;
    let team = local / SIDE;
    let lane = local % SIDE;
    let least = i32(params.first_term);
    let most = i32(params.terms) - 1;
    let step = i32(SIDE * params.parts);
#for k in ROWS
    var row_{k} = 0.0;
#end
#if BY_ROWS
    let row_last = min(i32(last) + params.row_end, most);
    for (var j = max(i32(first) + params.row_begin, least) + i32(part * SIDE + lane); j <= row_last; j += step) {
#for k in ROWS
        let i_{k} = first + team + {k}u * TEAMS;
        let off_{k} = j - i32(i_{k});
        if i_{k} <= last && off_{k} >= params.row_begin && off_{k} <= params.row_end {
            row_{k} += product(i_{k}, u32(j), u32(j));
        }
#end
    }
#endif
    var column = 0.0;
#if BY_COLUMNS
    let i = first + lane;
    let column_last = min(i32(last) + params.column_end, most);
    for (var j = max(i32(first) + params.column_begin, least) + i32(part * SIDE + team); j <= column_last; j += step) {
#for k in ROWS
        let j_{k} = j + i32({k}u * TEAMS);
        let off_{k} = j_{k} - i32(i);
        if i <= last && j_{k} <= column_last && off_{k} >= params.column_begin && off_{k} <= params.column_end {
            column += product(u32(j_{k}), i, u32(j_{k}));
        }
#end
    }
#endif
#for k in ROWS
    wg_rows[(team + {k}u * TEAMS) * SIDE + lane] = row_{k};
#end
    wg_columns[local] = column;
    for (var stride = SIDE / 2u; stride > 0u; stride /= 2u) {
        workgroupBarrier();
        if lane < stride {
#for k in ROWS
            wg_rows[(team + {k}u * TEAMS) * SIDE + lane] += wg_rows[(team + {k}u * TEAMS) * SIDE + lane + stride];
#end
        }
    }
    workgroupBarrier();
    if local < SIDE && first + local <= last {
        var sum = wg_rows[local * SIDE];
        for (var k = 0u; k < TEAMS; k++) { sum += wg_columns[k * SIDE + local]; }
        put(first + local, part, sum);
    }
}
