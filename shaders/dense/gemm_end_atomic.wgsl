// The epilogue of a matrix product with k split over workgroups: all slices of k add to one slab in scratch,
// cleared before, by compare-exchange on the bits of its f32 elements. The order of the additions is free.
#import dense/gemm_params

@group(0) @binding(3) var<storage, read_write> partial: array<atomic<u32>>;

fn begin_four(row: u32, col: u32) -> vec4<f32> { return vec4<f32>(); }

fn add_to(at: u32, sum: f32) {
    var old = atomicLoad(&partial[at]);
    loop {
        let tried = atomicCompareExchangeWeak(&partial[at], old, bitcast<u32>(bitcast<f32>(old) + sum));
        if tried.exchanged { break; }
        old = tried.old_value;
    }
}

fn end_four(slice: u32, row: u32, col: u32, sums: vec4<f32>) {
    if row >= params.m || col >= params.n { return; }
    let to = row * params.n + col;
    add_to(to, sums.x);
    if col + 1u < params.n { add_to(to + 1u, sums.y); }
    if col + 2u < params.n { add_to(to + 2u, sums.z); }
    if col + 3u < params.n { add_to(to + 3u, sums.w); }
}
