// Elements that are not 0; NaN is not.
fn keep(x: T) -> bool { return x != T(0); }
