// An image of u8, four elements in a word.
@group(0) @binding(1) var<storage, read> input: array<u32>;

fn byte_at(i: u32) -> u32 { return (input[i / 4u] >> (8u * (i % 4u))) & 255u; }
