// Places of the colours of a pixel, for kernels of grey.
struct Params {
    pixels: u32,
    words: u32,  // of the input
    step: u32,   // elements from a pixel to the next
    colour: u32, // elements from a colour to the next
}
@group(0) @binding(0) var<uniform> params: Params;
