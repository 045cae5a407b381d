// The first position of the smallest magnitude of floats, as primitives/iamax: NaN comes before all numbers.
alias Acc = vec2<u32>;

fn lift(x: T, index: u32) -> Acc {
    return vec2<u32>(select((bitcast<u32>(x) & 0x7fffffffu) + 1u, 0u, is_nan(x)), index);
}

fn accumulate(total: Acc, x: Acc) -> Acc { return select(total, x, x.x < total.x); }

fn finish(total: Acc) -> u32 { return total.y; }
