// Whether neighbours are of different runs. Floats by value, so that -0 equals +0 and NaN equals nothing, but
// in bits, since a device may take subnormal numbers for 0.
fn differs(a: u32, b: u32) -> bool {
#if FLOAT
    let zeros = ((a | b) & 0x7fffffffu) == 0u;
    return ((a != b) & !zeros) | ((a & 0x7fffffffu) > 0x7f800000u);
#else
    return a != b;
#endif
}
