// Sums along x: of the four elements from `x` on, of the row that begins at `row`.
#import conv/lines_row

fn along(row: u32, x: u32) -> vec4<f32> {
    var sum = vec4<f32>();
    var e = i32(x) - i32(params.radius_x * params.step);
    for (var tap = 0u; tap <= 2u * params.radius_x; tap++) {
        sum = fma(params.weights[tap], four(row, e), sum);
        e += i32(params.step);
    }
    return sum;
}
