// Adds f32 to y by compare-exchange of its bits.
#import workgroup/atomic_combine
#import op/add as op

alias Acc = f32;
@group(0) @binding(5) var<storage, read_write> totals: array<atomic<u32>>;

fn add(row: u32, term: f32) {
    if row < params.rows {
        atomic_combine(row, params.alpha * term);
    }
}
