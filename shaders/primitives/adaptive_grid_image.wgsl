// The field of an image over the unit square: the pixel under each point. The importer declares `struct Params` with
// `width` and `height`, and IMAGE_BINDING.
@group(0) @binding(IMAGE_BINDING) var<storage, read> image: array<f32>;

fn field(p: vec2<f32>) -> f32 {
    let x = min(u32(p.x * f32(params.width)), params.width - 1u);
    let y = min(u32(p.y * f32(params.height)), params.height - 1u);
    return image[y * params.width + x];
}
