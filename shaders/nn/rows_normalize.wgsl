// Softmax and norms over rows: one read and one write, the row in registers between the passes over it. LANES
// invocations share a row; a workgroup takes as many rows as fit it. Rows that no workgroup holds are taken in
// parts: STATISTICS leaves centre and total of each part, rows_join.wgsl joins them, and JOINED applies them.
#import rows/load
#import workgroup/reduce_rows
#import nn/softmax as normalizer
#if STATISTICS
@group(0) @binding(2) var<storage, read_write> statistics: array<vec2<f32>>;
#else
#import nn/rows_store
#endif
#if JOINED
const JOINED_BINDING: u32 = 3u;
@group(0) @binding(JOINED_BINDING) var<storage, read> joined: array<vec2<f32>>;
#endif

const SPANS: u32 = WORKGROUP_SIZE / LANES;

@compute @workgroup_size(WORKGROUP_SIZE)
fn rows_normalize(
#put row_builtins()
) {
    let first = workgroup_index(group) * SPANS;
    if first >= params.rows * params.parts {
        return;
    }
#put row_lane()
    let number = first + lane / LANES;
    let row = number / params.parts;
    let there = row < params.rows;
    let span = span_of(number, lane);
    var x: array<vec4<f32>, QUADS>;
#for i in QUADS
    x[{i}] = load(span, {i}u);
#end
#if JOINED
    let known = joined[params.first + min(row, params.rows - 1u)];
    let center = known.x;
    let factor = known.y;
#for i in QUADS
    x[{i}] = centered(x[{i}], center);
#end
#else
    let len = f32(span.len);
    var center = 0.0;
    if CENTERED {
        var extreme = vec4(params.pad);
#for i in QUADS
        extreme = combine4(extreme, x[{i}], BY_LARGEST);
#end
        center = center_of(row_total(extreme, BY_LARGEST, 0u, lane, sub_size), len);
#for i in QUADS
        x[{i}] = centered(x[{i}], center);
#end
    }
    var sum = vec4(0.0);
#for i in QUADS
    sum += select(vec4(0.0), weight(x[{i}]), inside(span, {i}u));
#end
    let total = row_total(sum, false, 1u, lane, sub_size);
#if STATISTICS
    if there && span.lane == 0u {
        statistics[params.first * params.parts + number] = vec2(center, total);
    }
#else
    let factor = factor_of(total, len);
#endif
#endif
#if !STATISTICS
#for i in QUADS
    store(span, {i}u, result(x[{i}], factor));
#end
#endif
}
