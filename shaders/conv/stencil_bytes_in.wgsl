// Elements of u8, read as numbers. Four elements are a word.
@group(0) @binding(1) var<storage, read> input: array<u32>;

fn byte_at(i: u32) -> u32 { return (input[i / 4u] >> (8u * (i % 4u))) & 255u; }

fn load(i: u32) -> f32 { return f32(byte_at(i)); }

fn numbers(word: u32) -> vec4<f32> {
    return vec4<f32>(vec4(word & 255u, (word >> 8u) & 255u, (word >> 16u) & 255u, word >> 24u));
}

// The four elements of word `i`.
fn load_group(i: u32) -> vec4<f32> { return numbers(input[i]); }

// The four elements from `i` on, all inside the input.
fn load_four(i: u32) -> vec4<f32> {
    let shift = 8u * (i % 4u);
    var word = input[i / 4u] >> shift;
    if shift > 0u {
        word |= input[i / 4u + 1u] << (32u - shift);
    }
    return numbers(word);
}
