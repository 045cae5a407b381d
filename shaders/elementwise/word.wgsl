// Stores words of an output whose last word may be only partly filled.
#import elementwise/extent

fn word_count() -> u32 { return (extent() + PACK - 1u) / PACK; }

// Word `i`, where `old` stands: elements of the last word that are not the output's keep their bits.
fn merged(i: u32, old: u32, word: u32) -> u32 {
    let elements = extent() - i * PACK;
    if (elements >= PACK) { return word; }
    let mask = (1u << (elements * (32u / PACK))) - 1u;
    return (old & ~mask) | (word & mask);
}
#if !VEC4

fn store_word(i: u32, word: u32) {
    let elements = extent() - i * PACK;
    if (elements >= PACK) {
        output[i] = word;
    } else {
        output[i] = merged(i, output[i], word);
    }
}
#endif
