// Coordinates beyond the ends.
fn extents() -> vec3<u32> { return vec3(params.w, params.h, params.d); }

// Where coordinate `i` of an axis reads; always inside. Under WRAP no filter is longer than its axis, so one
// period is all that it can be off by where the value counts.
fn fold(i: i32, extent: u32) -> u32 {
    let n = i32(extent);
#if WRAP
    let once = select(i, i + n, i < 0);
    return u32(clamp(select(once, once - n, once >= n), 0, n - 1));
#else
    return u32(clamp(i, 0, n - 1));
#endif
}

// Whether coordinate `i` of an axis counts: what is outside is 0 under the boundary ZERO.
fn counts(i: i32, extent: u32) -> bool {
#if ZERO
    return i >= 0 && i < i32(extent);
#else
    return true;
#endif
}
