// Merges the parts of each row: rescales sums and weighted values to the largest score, adds them, and divides.
// A workgroup merges one row; each team of COLUMNS threads walks over some of its parts.
#import attention/attention_params
#import attention/attention_output
#import attention/attention_logsumexp
#import element/exp4
#import workgroup/reduce_rows

const WORKGROUP_SIZE: u32 = 256u;
const LANES: u32 = 256u;
// At least the vec4s of a row, a power of two.
const COLUMNS: u32 = 16u;
const TEAMS: u32 = WORKGROUP_SIZE / COLUMNS;
const PARTIALS_BINDING: u32 = 2u;

@group(0) @binding(PARTIALS_BINDING) var<storage, read> partials: array<vec4<f32>>;

var<workgroup> wg_vec4s: array<vec4<f32>, WORKGROUP_SIZE>;
var<workgroup> wg_sums: array<f32, WORKGROUP_SIZE>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn attention_merge(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let row = workgroup_index(id);
    if row >= params.rows {
        return;
    }
    let base = row * params.parts * (VALUE_VEC4S + 1u);
    var least_bits = 0xff800000u;
    var largest = bitcast<f32>(least_bits);
    for (var part = local; part < params.parts; part += WORKGROUP_SIZE) {
        largest = max(largest, partials[base + part * (VALUE_VEC4S + 1u) + VALUE_VEC4S].x);
    }
    let center = anchor(row_total(vec4(largest), true, 0u, local, 1u));
    let column = local % COLUMNS;
    let read_column = min(column, VALUE_VEC4S - 1u);
    var sum = 0.0;
    var total = vec4<f32>();
    for (var part = local / COLUMNS; part < params.parts; part += TEAMS) {
        let at = base + part * (VALUE_VEC4S + 1u);
        let statistics = partials[at + VALUE_VEC4S];
        let weight = exp2(statistics.x - center);
        sum += weight * statistics.y;
        total += weight * partials[at + read_column];
    }
    wg_vec4s[local] = total;
    wg_sums[local] = sum;
    workgroupBarrier();
    if local < VALUE_VEC4S {
        for (var team = 1u; team < TEAMS; team++) {
            total += wg_vec4s[team * COLUMNS + local];
            sum += wg_sums[team * COLUMNS + local];
        }
#if LOGSUMEXP
        if local == 0u {
            store_logsumexp(params.first_row + row, center, sum);
        }
#endif
        store_vec4(params.first_row + row, local, total * select(1.0 / sum, 0.0, sum == 0.0));
    }
}
