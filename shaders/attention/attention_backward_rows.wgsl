// Gathers the statistics of the rows of a step's scores: of each the logarithm of its sum, the mean, the first column
// that its query sees, and one past the last. A thread computes a row.
#import attention/attention_backward_visible
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    // Rows of all heads.
    len: u32,
    // Queries of a head, and the first of them.
    rows: u32,
    first_query: u32,
    queries: u32,
    // The first key and the number of those in a row.
    first_key: u32,
    columns: u32,
    keys: u32,
    window: u32,
    // The first query's place among all.
    first_row: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> statistics: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> rows: array<vec4<f32>>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn attention_backward_rows(
    @builtin(workgroup_id) id: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = workgroup_index(id) * WORKGROUP_SIZE + local;
    if index >= params.len {
        return;
    }
    let row = index % params.rows;
    let of_row = statistics[params.first_row + index / params.rows * params.queries + row];
    rows[index] = vec4(of_row, vec2<f32>(visible_to(row, params.columns)));
}
