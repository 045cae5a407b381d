// Shared by kernels of grey on bytes: the brightness of a pixel, and words of four pixels.
#import workgroup/index
#import image/grey_params

const WORKGROUP_SIZE: u32 = 256u;

@group(0) @binding(1) var<storage, read> input: array<u32>;
@group(0) @binding(2) var<storage, read_write> output: array<u32>;

fn weigh(r: u32, g: u32, b: u32) -> u32 {
#if SOURCE
    return 3u * r / 10u + 6u * g / 10u + b / 10u;
#else
    return (299u * r + 587u * g + 114u * b + 500u) / 1000u;
#endif
}

// Stores a word, of which the output may fill only a part: what lies behind it keeps its bits.
fn put_word(at: u32, word: u32) {
    let pixels = params.pixels - 4u * at;
    if pixels >= 4u {
        output[at] = word;
    } else {
        let mask = (1u << (8u * pixels)) - 1u;
        output[at] = (output[at] & ~mask) | (word & mask);
    }
}
