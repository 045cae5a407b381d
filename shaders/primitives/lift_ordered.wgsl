// Reductions of floats by order: keys whose unsigned order is that of the floats, with NaN beyond all numbers. NAN_KEY
// is 0 for a minimum and 2^32 - 1 for a maximum: NaN wins either way, and no number has either key.
const NAN_KEY: u32 = 0u;
alias Acc = u32;

fn lift(x: T, index: u32) -> Acc {
    let bits = bitcast<u32>(x);
    let key = select(bits | 0x80000000u, ~bits, (bits & 0x80000000u) != 0u);
    return select(key, NAN_KEY, is_nan(x));
}

fn finish(total: Acc) -> T {
    let bits = select(~total, total & 0x7fffffffu, (total & 0x80000000u) != 0u);
    return bitcast<T>(select(bits, 0x7fc00000u, total == NAN_KEY));
}

// An element that follows all of those in `total`.
fn accumulate(total: Acc, x: Acc) -> Acc { return op_combine(total, x); }
