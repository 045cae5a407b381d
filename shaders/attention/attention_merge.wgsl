// Joins the parts of each row: sums and weighted values scaled to the largest score of all, then divided.
// A workgroup of WORKGROUP_SIZE takes one row; COLUMNS lanes walk over some of its parts.
#import attention/attention_params
#import attention/attention_output
#import element/exp4
#import workgroup/reduce_rows

const WORKGROUP_SIZE: u32 = 256u;
const LANES: u32 = 256u;
// Lanes for the fours of a row, a power of two.
const COLUMNS: u32 = 16u;
const TEAMS: u32 = WORKGROUP_SIZE / COLUMNS;
const PARTIALS_BINDING: u32 = 2u;

@group(0) @binding(PARTIALS_BINDING) var<storage, read> partials: array<vec4<f32>>;

var<workgroup> wg_fours: array<vec4<f32>, WORKGROUP_SIZE>;
var<workgroup> wg_sums: array<f32, WORKGROUP_SIZE>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn attention_merge(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let row = workgroup_index(id);
    if row >= params.rows {
        return;
    }
    let base = row * params.parts * (FOURS + 1u);
    var least_bits = 0xff800000u;
    var most = bitcast<f32>(least_bits);
    for (var part = local; part < params.parts; part += WORKGROUP_SIZE) {
        most = max(most, partials[base + part * (FOURS + 1u) + FOURS].x);
    }
    let center = anchor(row_total(vec4(most), true, 0u, local, 1u));
    let column = local % COLUMNS;
    let four = min(column, FOURS - 1u);
    var sum = 0.0;
    var total = vec4<f32>();
    for (var part = local / COLUMNS; part < params.parts; part += TEAMS) {
        let at = base + part * (FOURS + 1u);
        let largest = partials[at + FOURS];
        let weight = exp2(largest.x - center);
        sum += weight * largest.y;
        total += weight * partials[at + four];
    }
    wg_fours[local] = total;
    wg_sums[local] = sum;
    workgroupBarrier();
    if local < FOURS {
        for (var team = 1u; team < TEAMS; team++) {
            total += wg_fours[team * COLUMNS + local];
            sum += wg_sums[team * COLUMNS + local];
        }
        store_four(params.first_row + row, local, total * select(1.0 / sum, 0.0, sum == 0.0));
    }
}
