// Encodes each row as bytes and a scale, in one read: LANES threads hold a row in registers, find its largest
// magnitude together, and pack four elements to a word. With MEASURE they only find the largest magnitude of a part
// of a row, and join it with those of the other parts; with TENSOR with those of all rows.
#import rows/load
#import workgroup/reduce_rows
#import quantize/scale

#if MEASURE
@group(0) @binding(2) var<storage, read_write> largest: array<atomic<u32>>;
#else
@group(0) @binding(2) var<storage, read_write> output: array<u32>;
@group(0) @binding(3) var<storage, read_write> scale: array<f32>;
#endif

const SPANS: u32 = WORKGROUP_SIZE / LANES;

@compute @workgroup_size(WORKGROUP_SIZE)
fn quantize_rows(
#put row_builtins()
) {
    let first = workgroup_index(group) * SPANS;
    if first >= params.rows * params.parts {
        return;
    }
#put row_lane()
    let number = first + lane / LANES;
    let span = span_of(number, lane);
    let leads = span.lane == 0u && number < params.rows * params.parts;
    var x: array<vec4<f32>, VEC4S>;
#for i in VEC4S
    x[{i}] = load(span, {i}u);
#end
    var most = vec4(0.0);
#for i in VEC4S
    most = max(most, magnitudes_of(x[{i}]));
#end
    let magnitude = row_total(most, true, 0u, lane, sub_size);
#if MEASURE
    if leads {
#if TENSOR
        let to = 0u;
#else
        let to = params.first + number / params.parts;
#endif
        // The bits of nonnegative numbers have the order of the numbers.
        atomicMax(&largest[to], bitcast<u32>(magnitude));
    }
#else
    let factor = scale_of(magnitude);
    if leads {
        scale[number] = factor;
    }
#for i in VEC4S
    if inside(span, {i}u).x {
        output[(span.begin + offsets(span, {i}u).x) / 4u] = codes_of(x[{i}], vec4(factor));
    }
#end
#endif
}
