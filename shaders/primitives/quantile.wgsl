// A quantile between two neighbours of the sorted input. One thread.
struct Params {
    place: u32, // of the quantile
    share: f32, // its distance from the first neighbour; 0 if it is that
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> below: array<f32>;
@group(0) @binding(2) var<storage, read> above: array<f32>;
@group(0) @binding(3) var<storage, read_write> output: array<f32>;

@compute @workgroup_size(1)
fn quantile() {
    let first = below[0];
    // Differences of large numbers may overflow, so each is multiplied.
    let between = (1.0 - params.share) * first + params.share * above[0];
    output[params.place] = select(between, first, params.share == 0.0 || first == above[0]);
}
