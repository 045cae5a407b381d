// The sum of products over places that lie evenly apart, four of them on their way at once. An importer says whether
// the first padding ends the walk (PADDED).
fn walk(first: u32, end: u32, stride: u32) -> f32 {
    var sums = vec4<f32>();
    var i = first;
    for (; i < end && end - i > 3u * stride; i += 4u * stride) {
        let at = vec4<u32>(i, i + stride, i + 2u * stride, i + 3u * stride);
        let cols = vec4<u32>(col_idxs[at.x], col_idxs[at.y], col_idxs[at.z], col_idxs[at.w]);
        sums += product4(vec4<f32>(value(at.x), value(at.y), value(at.z), value(at.w)), cols);
        if PADDED && cols.w >= params.cols {
            i = end;
            break;
        }
    }
    for (; i < end; i += stride) {
        sums.x += product(value(i), col_idxs[i]);
    }
    return (sums.x + sums.y) + (sums.z + sums.w);
}
