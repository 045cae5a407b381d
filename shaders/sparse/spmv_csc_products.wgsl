// The product of each entry with its element of x, column by column, for a sort by row and spmv_coo. One thread walks a
// column.
#import sparse/spmv_columns

@group(0) @binding(4) var<storage, read_write> products: array<f32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmv_csc_products(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let col = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if col >= params.cols {
        return;
    }
    let range = column_range(col);
    for (var i = range.x; i < range.y; i++) {
        products[i] = value(i) * x[col];
    }
}
