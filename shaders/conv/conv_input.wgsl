// Cells of x, which is 0 beyond its edges and between spread cells.
#import conv/conv_params

@group(0) @binding(1) var<storage, read> x: array<T>;

// Places before the first wrap to beyond the last.
fn is_row(y: u32) -> bool { return y < params.bound_h && y % UP_H == 0u; }
fn is_column(column: u32) -> bool { return column < params.bound_w && column % UP_W == 0u; }

// The cell at (y, column) of the plane that begins at `plane`, if there is one.
fn cell(plane: u32, y: u32, column: u32) -> f32 {
    if is_row(y) && is_column(column) {
#if LAST
        return f32(x[plane + (y / UP_H * params.w + column / UP_W) * (params.groups * params.channels_in)]);
#else
        return f32(x[plane + y / UP_H * params.w + column / UP_W]);
#endif
    }
    return 0.0;
}
