// Sum. Requires an alias `Acc`.
fn op_identity() -> Acc { return Acc(0); }
fn op_combine(a: Acc, b: Acc) -> Acc { return a + b; }
