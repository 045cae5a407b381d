// Sums of a row for Sobel gradients, for the four elements from `p.x` on: loads the group, the one before and the one
// after.
fn row_of(p: vec3<u32>, y: i32) -> Row {
    let x = p.x / PACK;
    let row = (p.z * params.h + fold(y, params.h)) * params.groups;
    let here = load_group(row + x);
    var before = load_group(row + max(x, 1u) - 1u);
    var after = load_group(row + min(x + 1u, params.groups - 1u));
    // Beyond the ends stands the pixel at the end; left and right are STEP elements off.
    var left: vec4<f32>;
    var right: vec4<f32>;
    if STEP == 1u {
        before = select(before, here.xxxx, x == 0u);
        after = select(after, here.wwww, x + 1u == params.groups);
        left = vec4(before.w, here.xyz);
        right = vec4(here.yzw, after.x);
    } else if STEP == 2u {
        before = select(before, here.xyxy, x == 0u);
        after = select(after, here.zwzw, x + 1u == params.groups);
        left = vec4(before.zw, here.xy);
        right = vec4(here.zw, after.xy);
    } else if STEP == 3u {
        before = select(before, here.xxyz, x == 0u);
        after = select(after, here.yzww, x + 1u == params.groups);
        left = vec4(before.yzw, here.x);
        right = vec4(here.w, after.xyz);
    } else {
        // Whole pixels: at the ends the clamped loads are the pixels there.
        left = before;
        right = after;
    }
    return Row(right - left, left + 2.0 * here + right);
}
