// Elements of f16, read as numbers of f32. With VECTORS rows are multiples of 4 long.
#import element/halves

#if VECTORS
@group(0) @binding(1) var<storage, read> input: array<vec2<u32>>;

fn word_at(i: u32) -> u32 { return input[i / 2u][i % 2u]; }

// Elements 4 i ... 4 i + 3.
fn load_group(i: u32) -> vec4<f32> {
    let words = input[i];
    return vec4(unpack2x16float(words.x), unpack2x16float(words.y));
}
#else
@group(0) @binding(1) var<storage, read> input: array<u32>;

fn word_at(i: u32) -> u32 { return input[i]; }
#endif

fn load(i: u32) -> f32 { return decode(word_at(i / 2u), i % 2u); }

// The four elements from `i` on, all inside the input.
fn load_four(i: u32) -> vec4<f32> {
    let first = unpack2x16float(word_at(i / 2u));
    let second = unpack2x16float(word_at(i / 2u + 1u));
    if i % 2u == 0u { return vec4(first, second); }
    return vec4(first.y, second, load(i + 3u));
}
