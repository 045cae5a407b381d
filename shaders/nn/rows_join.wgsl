// Joins the statistics of the parts of a row: centers and totals of the parts become center and factor of the row. A
// workgroup joins one row.
#import rows/params
#import workgroup/reduce_rows
#import nn/softmax as normalizer

@group(0) @binding(1) var<storage, read> statistics: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> joined: array<vec2<f32>>;

fn length(part: u32) -> f32 { return f32(min(params.part_len, params.n - part * params.part_len)); }

@compute @workgroup_size(WORKGROUP_SIZE)
fn rows_join(
#put row_builtins()
) {
    let row = workgroup_index(group);
    if row >= params.rows {
        return;
    }
#put row_lane()
    let parts = row * params.parts;
    let n = f32(params.n);
    var extreme = vec4(params.pad);
    for (var part = lane; part < params.parts; part += LANES) {
        extreme.x = combine(extreme.x, part_center(statistics[parts + part].x, length(part)), BY_LARGEST);
    }
    let center = center_of(row_total(extreme, BY_LARGEST, 0u, lane, sub_size), n);
    var sum = vec4(0.0);
    for (var part = lane; part < params.parts; part += LANES) {
        let part_statistics = statistics[parts + part];
        sum.x += part_total(part_statistics.y, part_statistics.x, center, length(part));
    }
    let total = row_total(sum, false, 1u, lane, sub_size);
    if lane == 0u {
        joined[row] = vec2(center, factor_of(total, n));
    }
}
