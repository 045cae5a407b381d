// Elements of 1 or 2 bytes, PACK in a word. A word of the output has one writer, which has all its elements.
const BITS: u32 = 32u / PACK;
const MASK: u32 = (1u << BITS) - 1u;

@group(0) @binding(1) var<storage, read> input: array<u32>;
@group(0) @binding(2) var<storage, read_write> output: array<u32>;

// Element `at` of the output, read from its place in the input.
fn moved(at: u32) -> u32 {
    let size = params.m * params.n;
    let place = at % size;
    let source = at - place + place % params.m * params.n + place / params.m;
    return (input[source / PACK] >> (source % PACK * BITS)) & MASK;
}

// Stores the word that begins with element `first`. If the output fills only a part of it, the rest keeps its bits.
fn store_word(first: u32, word: u32) {
    let elements = params.batch * params.m * params.n - first;
    let at = first / PACK;
    if elements >= PACK {
        output[at] = word;
    } else {
        let mask = (1u << (elements * BITS)) - 1u;
        output[at] = (output[at] & ~mask) | (word & mask);
    }
}
