// The built-in functions of Zip, `fn zip(x: T, y: T) -> T`, one chosen by a flag.
// The importer declares T, `is_nan` and `divide`, as the files of `element` do.
#if ADD
fn zip(x: T, y: T) -> T { return x + y; }
#endif
#if SUB
fn zip(x: T, y: T) -> T { return x - y; }
#endif
#if MUL
fn zip(x: T, y: T) -> T { return x * y; }
#endif
#if DIV
fn zip(x: T, y: T) -> T { return divide(x, y); }
#endif
// WGSL's min and max lose NaN.
#if MIN
fn zip(x: T, y: T) -> T { return select(y, x, is_nan(x) || (x <= y && !is_nan(y))); }
#endif
#if MAX
fn zip(x: T, y: T) -> T { return select(y, x, is_nan(x) || (x >= y && !is_nan(y))); }
#endif
