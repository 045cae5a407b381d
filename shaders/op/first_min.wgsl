// Minimum of pairs (key, index): the smallest key, and among equal keys the lowest index.
fn op_identity() -> Acc { return vec2<u32>(4294967295u); }
fn op_combine(a: Acc, b: Acc) -> Acc { return select(b, a, a.x < b.x || (a.x == b.x && a.y <= b.y)); }
