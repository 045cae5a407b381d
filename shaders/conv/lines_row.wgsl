// Four elements of a row, anywhere, also outside the input.

// Element `e` of the row that begins at `row`. It is less than radius_x pixels before the row.
fn element(row: u32, e: i32) -> f32 {
    let n = i32(params.w);
#if WRAP
    let at = i32(fold(e, params.w));
#else
    let step = i32(params.step);
    // The same channel of the pixel at the end.
    var at = e;
    if e < 0 {
        at = (e + i32(params.radius_x) * step) % step;
    } else if e >= n {
        at = n - step + e % step;
    }
#endif
    return select(0.0, load(row + u32(at)), counts(e, params.w));
}

fn four(row: u32, e: i32) -> vec4<f32> {
    if e >= 0 && e + 4 <= i32(params.w) { return load_four(row + u32(e)); }
    return vec4(element(row, e), element(row, e + 1), element(row, e + 2), element(row, e + 3));
}
