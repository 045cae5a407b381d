// The first position of the largest magnitude of floats: pairs (key, index), where the smallest key wins. NaN comes
// before all numbers, and 0 before the identity. The importer declares `T` and imports op/first_min.
alias Acc = vec2<u32>;

fn lift(x: T, index: u32) -> Acc {
    return vec2<u32>(select(0xfffffffeu - (bitcast<u32>(x) & 0x7fffffffu), 0u, is_nan(x)), index);
}

// An element that follows all of those in `total`: on equal keys the earlier one stays.
fn accumulate(total: Acc, x: Acc) -> Acc { return select(total, x, x.x < total.x); }

fn finish(total: Acc) -> u32 { return total.y; }
