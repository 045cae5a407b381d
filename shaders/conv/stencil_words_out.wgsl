// A word may belong to two rows, and so to two threads: each changes only its own bits.
@group(0) @binding(2) var<storage, read_write> output: array<atomic<u32>>;

fn put_bits(word: u32, mask: u32, bits: u32) {
    if mask == 0xffffffffu {
        atomicStore(&output[word], bits);
    } else if mask != 0u {
        atomicAnd(&output[word], ~mask);
        atomicOr(&output[word], bits & mask);
    }
}
