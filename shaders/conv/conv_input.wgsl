// Cells of x, which is 0 beyond its edges and between the cells that it is spread to.
#import conv/conv_params

@group(0) @binding(1) var<storage, read> x: array<f32>;

// Of the plane that begins at `plane`, the cell at (y, column); before the first these wrap.
fn cell(plane: u32, y: u32, column: u32) -> f32 {
    if y >= params.bound_h || column >= params.bound_w || y % UP_H != 0u || column % UP_W != 0u {
        return 0.0;
    }
    return x[plane + y / UP_H * params.w + column / UP_W];
}
