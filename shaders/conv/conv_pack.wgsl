// Images of f16 with their channels next to each other, those of a group padded with zeros to whole pieces of 8.
// One thread makes one piece of a pixel. Threads take 64 pixels, piece by piece, so that neighbours read neighbours.
// Requires f16.
#import workgroup/index
enable f16;

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    // Threads, pixels of all images and of one, pieces of a group and of a pixel.
    count: u32, pixels: u32, image_pixels: u32, pieces: u32, pixel_pieces: u32,
    // The input: its first element, elements of an image, from channel to channel and from pixel to pixel, and the
    // channels of a group.
    from_at: u32, image: u32, channel_step: u32, pixel_step: u32, channels: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<f16>;
@group(0) @binding(2) var<storage, read_write> output: array<vec4<f16>>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn conv_pack(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(workgroup) * WORKGROUP_SIZE + lane;
    let piece = at / 64u % params.pixel_pieces;
    let pixel = at / 64u / params.pixel_pieces * 64u + at % 64u;
    if at >= params.count || pixel >= params.pixels { return; }
    let image = pixel / params.image_pixels;
    let first = piece % params.pieces * 8u;
    let channel = piece / params.pieces * params.channels + first;
    let from_ = params.from_at + image * params.image + (pixel - image * params.image_pixels) * params.pixel_step;
    let to = (pixel * params.pixel_pieces + piece) * 2u;
#for half in 2
    var four_{half} = vec4<f16>();
#for i in 4
    if first + {4 * half + i}u < params.channels {
        four_{half}[{i}u] = input[from_ + (channel + {4 * half + i}u) * params.channel_step];
    }
#end
    output[to + {half}u] = four_{half};
#end
}
