// Whether neighbours are of different runs. Floats by value, so that -0 equals +0 and NaN equals nothing, but
// in bits, since a device may take subnormal numbers for 0.
fn differs(a: u32, b: u32) -> bool {
#if FLOAT
#if HALVES
    let size = 0x7fffu;
    let infinity = 0x7c00u;
#else
    let size = 0x7fffffffu;
    let infinity = 0x7f800000u;
#endif
    let zeros = ((a | b) & size) == 0u;
    return ((a != b) & !zeros) | ((a & size) > infinity);
#else
    return a != b;
#endif
}
