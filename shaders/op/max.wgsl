// Maximum of integers and of ordered keys. Requires an alias `Acc`. Floats come as keys, since WGSL's max drops NaN.
const IDENTITY: Acc = 0u;
fn op_identity() -> Acc { return IDENTITY; }
fn op_combine(a: Acc, b: Acc) -> Acc { return max(a, b); }
