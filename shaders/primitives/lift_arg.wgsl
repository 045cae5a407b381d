// Positions of extremes: pairs (key, index), where the smallest key wins. Keys order any element type as unsigned
// numbers; -0 equals +0, and NaN comes before all numbers.
const LARGEST: bool = false;
alias Acc = vec2<u32>;

fn order_key(x: T) -> u32 {
#if FLOAT
    let raw = bitcast<u32>(x);
    let bits = select(raw, 0u, raw == 0x80000000u);
    return select(bits | 0x80000000u, ~bits, (bits & 0x80000000u) != 0u);
#else
#if SIGNED
    return bitcast<u32>(x) ^ 0x80000000u;
#else
    return x;
#endif
#endif
}

fn lift(x: T, index: u32) -> Acc {
    let key = order_key(x);
    return vec2<u32>(select(select(key, ~key, LARGEST), 0u, is_nan(x)), index);
}

// An element that follows all of those in `total`: on equal keys the earlier one stays. Elements may have the
// identity's key, so the first replaces it in any case.
fn accumulate(total: Acc, x: Acc) -> Acc { return select(total, x, x.x < total.x || total.y == 4294967295u); }

fn finish(total: Acc) -> u32 { return total.y; }
