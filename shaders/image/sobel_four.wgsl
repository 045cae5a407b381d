// Sums of a row for Sobel gradients, for the four elements from `p.x` on: reads four elements at any position.
#import conv/lines_row

fn row_of(p: vec3<u32>, y: i32) -> Row {
    let row = (p.z * params.h + fold(y, params.h)) * params.w;
    let step = i32(params.step);
    let left = four(row, i32(p.x) - step);
    let right = four(row, i32(p.x) + step);
    return Row(right - left, left + 2.0 * four(row, i32(p.x)) + right);
}
