// The input anywhere, also outside, and the output by groups.
fn at(p: vec3<i32>) -> f32 {
    let x = fold(p.x, params.w);
    let y = fold(p.y, params.h);
    let z = fold(p.z, params.d);
    let value = load((z * params.h + y) * params.w + x);
#if ZERO
    let size = vec3<i32>(extents());
    return select(0.0, value, all(p >= vec3<i32>()) && all(p < size));
#else
    return value;
#endif
}

// Coordinates of cell `i` of a box.
fn cell(i: u32, box_x: u32, box_y: u32) -> vec3<u32> {
    return vec3(i % box_x, i / box_x % box_y, i / (box_x * box_y));
}

// Stores the outputs of the group that begins at `p`, which lies inside.
fn emit(p: vec3<u32>) {
#if PACKED
    var group = vec4<f32>();
    for (var i = 0u; i < min(PACK, params.w - p.x); i++) { group[i] = result(p + vec3(i, 0u, 0u)); }
    put_group(p, group);
#else
    put_group(p, result(p));
#endif
}
