// Computes softmax and norms of rows with one read and one write: the row stays in registers. LANES threads share a
// row; a workgroup computes as many rows as fit. Longer rows are split into parts: STATISTICS writes center and total
// of each part, rows_join.wgsl joins them, and JOINED applies them.
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
    let exists = row < params.rows;
    let span = span_of(number, lane);
    var x: array<vec4<f32>, VEC4S>;
#for i in VEC4S
    x[{i}] = load(span, {i}u);
#end
#if JOINED
    let statistics = joined[params.first + min(row, params.rows - 1u)];
    let center = statistics.x;
    let factor = statistics.y;
#for i in VEC4S
    x[{i}] = centered(x[{i}], center);
#end
#else
    let len = f32(span.len);
    var center = 0.0;
    if CENTERED {
        var extreme = vec4(params.pad);
#for i in VEC4S
        extreme = combine4(extreme, x[{i}], BY_LARGEST);
#end
        center = center_of(row_total(extreme, BY_LARGEST, 0u, lane, sub_size), len);
#for i in VEC4S
        x[{i}] = centered(x[{i}], center);
#end
    }
    var sum = vec4(0.0);
#for i in VEC4S
    sum += select(vec4(0.0), weight(x[{i}]), inside(span, {i}u));
#end
    let total = row_total(sum, false, 1u, lane, sub_size);
#if STATISTICS
    if exists && span.lane == 0u {
        statistics[params.first * params.parts + number] = vec2(center, total);
    }
#else
    let factor = factor_of(total, len);
#endif
#endif
#if !STATISTICS
#for i in VEC4S
    store(span, {i}u, result(x[{i}], factor));
#end
#endif
}
