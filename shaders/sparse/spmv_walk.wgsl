// The sum of products over places that lie evenly apart, four of them on their way at once. An importer says what a
// sum is, how four products are added up, and whether the first padding ends the walk (PADDED).
fn walk(first: u32, end: u32, stride: u32) -> Sum {
    var sum = Sum();
    for (var i = first; i < end; i += 4u * stride) {
        let places = vec4<u32>(i, i + stride, i + 2u * stride, i + 3u * stride);
        // What is behind the end is the first again, and multiplies as padding.
        let inside = places < vec4<u32>(end);
        let at = select(vec4<u32>(i), places, inside);
        let loaded = vec4<u32>(col_idxs[at.x], col_idxs[at.y], col_idxs[at.z], col_idxs[at.w]);
        let cols = select(vec4<u32>(params.cols), loaded, inside);
        sum += product4(vec4<f32>(value(at.x), value(at.y), value(at.z), value(at.w)), cols);
        if PADDED && cols.w >= params.cols {
            break;
        }
    }
    return sum;
}
