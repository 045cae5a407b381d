// Orders elements as unsigned numbers. Floats are compared by value: -0 equals +0, and NaN equals NaN and is above all
// numbers. The importer imports the element type as `element`.
fn search_key(x: T) -> u32 {
#if FLOAT
    let raw = bitcast<u32>(x);
    let bits = select(raw, 0u, raw == 0x80000000u);
    return select(select(bits | 0x80000000u, ~bits, (bits & 0x80000000u) != 0u), 4294967295u, is_nan(x));
#else
#if SIGNED
    return bitcast<u32>(x) ^ 0x80000000u;
#else
    return x;
#endif
#endif
}
