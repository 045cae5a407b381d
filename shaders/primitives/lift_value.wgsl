// Reductions of the elements themselves.
alias Acc = T;
fn lift(x: T, index: u32) -> Acc { return x; }
fn finish(total: Acc) -> T { return total; }

// An element that follows all of those in `total`.
fn accumulate(total: Acc, x: Acc) -> Acc { return op_combine(total, x); }
