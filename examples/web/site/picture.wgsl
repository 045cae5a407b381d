// Draws a picture of bytes, one a pixel, and below it the counts of its values, from the buffers that the ops wrote.
struct Params {
    // Width and height of the picture, and its place on the canvas: corner and extents, from 0 to 1.
    size: vec2f,
    corner: vec2f,
    extents: vec2f,
    pixels: f32,
    padding: f32,
}

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> bytes: array<u32>;
@group(0) @binding(2) var<storage, read> counts: array<u32>;

struct Place {
    @builtin(position) at: vec4f,
    @location(0) place: vec2f,
}

// A triangle that covers the canvas.
@vertex
fn cover(@builtin(vertex_index) i: u32) -> Place {
    let place = vec2f(f32(i & 1u), f32(i >> 1u)) * 2.0;
    return Place(vec4f(place * vec2f(2.0, -2.0) + vec2f(-1.0, 1.0), 0.0, 1.0), place);
}

@fragment
fn show(in: Place) -> @location(0) vec4f {
    let background = vec3f(0.05, 0.06, 0.08);
    let place = (in.place - params.corner) / params.extents;
    if all(place >= vec2f()) && all(place < vec2f(1.0)) {
        let pixel = vec2u(place * params.size);
        let i = pixel.y * u32(params.size.x) + pixel.x;
        let byte = (bytes[i / 4u] >> (8u * (i % 4u))) & 255u;
        return vec4f(vec3f(f32(byte) / 255.0), 1.0);
    }
    // The histogram takes the lowest fifth of the canvas. A bin that has a fiftieth of the pixels reaches its top.
    let bar = vec2f((in.place.x - 0.02) / 0.96, (1.0 - in.place.y) / 0.17);
    if bar.x >= 0.0 && bar.x < 1.0 && bar.y < 1.0 {
        let share = f32(counts[u32(bar.x * 256.0)]) * 50.0 / params.pixels;
        if bar.y < sqrt(share) {
            return vec4f(mix(vec3f(0.04, 0.49, 0.35), vec3f(0.55, 0.95, 0.78), bar.x), 1.0);
        }
    }
    return vec4f(background, 1.0);
}
