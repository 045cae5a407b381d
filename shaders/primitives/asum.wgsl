// Sums of magnitudes. The importer declares `T` and imports op/add.
alias Acc = T;
fn lift(x: T, index: u32) -> Acc { return abs(x); }
fn finish(total: Acc) -> T { return total; }

// An element that follows all of those in `total`.
fn accumulate(total: Acc, x: Acc) -> Acc { return op_combine(total, x); }
