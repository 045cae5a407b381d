// Where a sum goes: into y as alpha * sum + beta * y, or, where sums are SPLIT, among the parts of the whole.
#import dense/gemv_params

const RESULT_BINDING: u32 = 3u;

#if SPLIT
@group(0) @binding(RESULT_BINDING) var<storage, read_write> partial: array<f32>;

fn put(at: u32, part: u32, sum: f32) {
    partial[(params.first_part + part) * params.outputs + at] = sum;
}
#else
@group(0) @binding(RESULT_BINDING) var<storage, read_write> y: array<T>;

fn put(at: u32, part: u32, sum: f32) {
    var value = params.alpha * sum;
    if params.read_y != 0u {
        value += params.beta * f32(y[at]);
    }
    y[at] = T(value);
}
#endif
