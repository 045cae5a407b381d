// Product. Requires an alias `Acc`.
fn op_identity() -> Acc { return Acc(1); }
fn op_combine(a: Acc, b: Acc) -> Acc { return a * b; }
