// The logarithm of the sum of the exponentials of a query's scores, a result with LOGSUMEXP.
#if LOGSUMEXP
const LOGSUMEXP_BINDING: u32 = 5u;
@group(0) @binding(LOGSUMEXP_BINDING) var<storage, read_write> logsumexp: array<f32>;

const LN_2: f32 = 0.6931471805599453;

// Stores that of row `row` of q, whose largest score is `largest` ln 2, and whose powers of 2 below it have this sum.
fn store_logsumexp(row: u32, largest: f32, sum: f32) {
    // Some drivers drop NaN, and reject a constant bitcast to infinity.
    let is_nan = (bitcast<u32>(sum) & 0x7fffffffu) > 0x7f800000u;
    var infinity_bits = 0xff800000u;
    let logarithm = LN_2 * (largest + log2(sum));
    logsumexp[row] = select(select(logarithm, sum, is_nan), bitcast<f32>(infinity_bits), sum == 0.0);
}
#endif
