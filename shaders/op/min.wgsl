// Minimum of integers and of ordered keys. Requires an alias `Acc`. Floats come as keys, since WGSL's min drops NaN.
const IDENTITY: Acc = 4294967295u;
fn op_identity() -> Acc { return IDENTITY; }
fn op_combine(a: Acc, b: Acc) -> Acc { return min(a, b); }
