// Sums across x: of four elements in a row along the other axis, each of which is a group. A value is read once and
// added to every sum that it is part of.
struct Four {
    a: vec4<f32>,
    b: vec4<f32>,
    c: vec4<f32>,
    d: vec4<f32>,
}

// `value(place, j)` is the j-th group under the line of the first sum; weights begin at `first`.
fn across(place: vec2<u32>, first: u32) -> Four {
    var sums: Four;
    let last = 2u * params.radius_y;
    for (var j = 0u; j <= last + 3u; j++) {
        let v = value(place, j);
        // Below 0 these wrap to beyond the last.
        if j <= last { sums.a = fma(params.weights[first + j], v, sums.a); }
        if j - 1u <= last { sums.b = fma(params.weights[first + j - 1u], v, sums.b); }
        if j - 2u <= last { sums.c = fma(params.weights[first + j - 2u], v, sums.c); }
        if j - 3u <= last { sums.d = fma(params.weights[first + j - 3u], v, sums.d); }
    }
    return sums;
}

// Stores the sums whose first belongs to the group at `p`, as far as there are `count` of them.
fn put_across(p: vec3<u32>, apart: vec3<u32>, sums: Four, count: u32) {
    put_group(p, finish(p, sums.a));
    if count > 1u { put_group(p + apart, finish(p + apart, sums.b)); }
    if count > 2u { put_group(p + 2u * apart, finish(p + 2u * apart, sums.c)); }
    if count > 3u { put_group(p + 3u * apart, finish(p + 3u * apart, sums.d)); }
}
