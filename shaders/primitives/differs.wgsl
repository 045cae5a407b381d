// Decides if neighbours belong to different runs. Floats compare by value (-0 equals +0, NaN equals nothing), but on
// their bits, since a device may flush subnormal numbers to 0.
fn differs(a: u32, b: u32) -> bool {
#if FLOAT_KEYS
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
