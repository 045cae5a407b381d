// Stores words of an output whose last word may be only partly filled.
fn word_count() -> u32 { return (params.n + PACK - 1u) / PACK; }

fn store_word(i: u32, word: u32) {
    let elements = params.n - i * PACK;
    if (elements >= PACK) {
        output[i] = word;
    } else {
        // The other elements of the word are not the output's: they keep their bits.
        let mask = (1u << (elements * (32u / PACK))) - 1u;
        output[i] = (output[i] & ~mask) | (word & mask);
    }
}
