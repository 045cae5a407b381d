// Samples of an image: the pixel under each. The importer declares `struct Params` with `width` and `height`, at most
// 65535, and IMAGE_BINDING.
@group(0) @binding(IMAGE_BINDING) var<storage, read> image: array<f32>;

// The sample in this column and row of 2^log2_side. `log2_side` is at most 15.
fn sample_at(column: u32, row: u32, log2_side: u32) -> f32 {
    let x = ((2u * column + 1u) * params.width) >> (log2_side + 1u);
    let y = ((2u * row + 1u) * params.height) >> (log2_side + 1u);
    return image[y * params.width + x];
}
