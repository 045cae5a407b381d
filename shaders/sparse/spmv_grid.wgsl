// ELL: every row has the same number of slots, column-major. A row ends at its first padding.
#import sparse/spmv_values
#import sparse/spmv_walk

const PADDED: bool = true;

@group(0) @binding(1) var<storage, read> col_idxs: array<u32>;

// The sum of a row's products.
fn walk_row(row: u32) -> Sum {
    return walk(params.begin * params.rows + row, params.end * params.rows, params.rows);
}
