// Elements of which PACK share a word, of an array that may begin and end within one. A word has one writer, who
// leaves the elements that are not the array's as they are.
const OUTPUT_BINDING: u32 = 2u;
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<u32>;

#if HALVES
fn store_word(word: u32, first: u32, end: u32, a: f32, b: f32) {
    let bits = encode(a, b);
    let low = 2u * word >= first;
    let high = 2u * word + 1u < end;
    if low && high {
        output[word] = bits;
    } else {
        let mask = select(0u, 0xffffu, low) | select(0u, 0xffff0000u, high);
        output[word] = (output[word] & ~mask) | (bits & mask);
    }
}
#endif
