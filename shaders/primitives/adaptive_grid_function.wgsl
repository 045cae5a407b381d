// Samples of the user's function `fn field(p: vec2<f32>) -> f32` over the unit square.
#import primitives/adaptive_grid_ramp as field

fn sample_at(column: u32, row: u32, log2_side: u32) -> f32 {
    // Fractions of a power of two: exact.
    return field((vec2<f32>(f32(column), f32(row)) + 0.5) / f32(1u << log2_side));
}
