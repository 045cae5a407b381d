// Reductions of floats by order: keys whose unsigned order is that of the floats, shifted so that every NaN lies beyond
// all numbers: below them for a minimum, above them for a maximum, which has the negative SHIFT. The identity of either
// operator is the key of its infinity.
const SHIFT: u32 = 0x007fffffu;
alias Acc = u32;

fn lift(x: T, index: u32) -> Acc {
    let bits = bitcast<u32>(x);
    return (bits ^ (bitcast<u32>(bitcast<i32>(bits) >> 31u) | 0x80000000u)) + SHIFT;
}

fn finish(total: Acc) -> T {
    let key = total - SHIFT;
    return bitcast<T>(key ^ (~bitcast<u32>(bitcast<i32>(key) >> 31u) | 0x80000000u));
}

// An element that follows all of those in `total`.
fn accumulate(total: Acc, x: Acc) -> Acc { return op_combine(total, x); }
