// The sum of products over evenly spaced slots, four loads in flight. The importer defines a sum, how to add four
// products, and whether the first padding ends the walk (PADDED).
fn walk(first: u32, end: u32, stride: u32) -> Sum {
    var sum = Sum();
    var i = first;
    for (; i < end && end - i > 3u * stride; i += 4u * stride) {
        let at = vec4<u32>(i, i + stride, i + 2u * stride, i + 3u * stride);
        let cols = vec4<u32>(col_idxs[at.x], col_idxs[at.y], col_idxs[at.z], col_idxs[at.w]);
        sum += product4(vec4<f32>(value(at.x), value(at.y), value(at.z), value(at.w)), cols);
        if PADDED && cols.w >= params.cols {
            return sum;
        }
    }
    if i < end {
        // Beyond the end, the first slot is loaded again and counts as padding.
        let inside = vec2<bool>(end - i > stride, end - i > 2u * stride);
        let at = select(vec2<u32>(i), vec2<u32>(i + stride, i + 2u * stride), inside);
        let cols = select(vec2<u32>(params.cols), vec2<u32>(col_idxs[at.x], col_idxs[at.y]), inside);
        sum += product(value(i), col_idxs[i]) + (product(value(at.x), cols.x) + product(value(at.y), cols.y));
    }
    return sum;
}
