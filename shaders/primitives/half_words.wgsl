// Elements of 16 bits, two in a word.
//
//     #put store_halves(output)    stores the first `count` words of wg_words from element `begin` on, which is even

fn half_of(word: u32, i: u32) -> u32 { return extractBits(word, 16u * (i % 2u), 16u); }

#block store_halves(to)
    for (var p = 2u * lane; p < count; p += 2u * WORKGROUP_SIZE) {
        let at = (begin + p) / 2u;
        if p + 1u < count {
            {to}[at] = wg_words[p] | (wg_words[p + 1u] << 16u);
        } else {
            // The word of the last element keeps its upper half.
            {to}[at] = insertBits({to}[at], wg_words[p], 0u, 16u);
        }
    }
#end
