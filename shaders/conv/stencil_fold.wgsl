// Coordinates beyond the ends.
fn extents() -> vec3<u32> { return vec3(params.w, params.h, params.d); }

// The place that coordinate `i` of an axis reads; always inside. Under WRAP a coordinate that counts is off by at most
// one period, except with FAR: a filter is longer than its axis.
fn fold(i: i32, extent: u32) -> u32 {
    let n = i32(extent);
#if WRAP && FAR
    return u32((i % n + n) % n);
#else
#if WRAP
    let once = select(i, i + n, i < 0);
    return u32(clamp(select(once, once - n, once >= n), 0, n - 1));
#else
    return u32(clamp(i, 0, n - 1));
#endif
#endif
}

// If coordinate `i` of an axis counts: elements outside are 0 under the boundary ZERO.
fn counts(i: i32, extent: u32) -> bool {
#if ZERO
    return i >= 0 && i < i32(extent);
#else
    return true;
#endif
}
