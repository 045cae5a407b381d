// Brightness of RGB pixels, by words: one thread converts the three (with ALPHA four) words of four pixels to one; with
// PLANAR one word of each plane.
#import image/grey_weigh

fn part(word: u32, i: u32) -> u32 { return (word >> (8u * i)) & 255u; }

#if PLANAR
// The four bytes from `i` on. The last pixels may fill only a part of them.
fn word_from(i: u32) -> u32 {
    let shift = 8u * (i % 4u);
    var word = input[i / 4u] >> shift;
    if shift > 0u {
        word |= input[min(i / 4u + 1u, params.words - 1u)] << (32u - shift);
    }
    return word;
}
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn grey_packed(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if at >= (params.pixels - 1u) / 4u + 1u { return; }
    var word = 0u;
#if PLANAR
    let r = word_from(4u * at);
    let g = word_from(4u * at + params.colour);
    let b = word_from(4u * at + 2u * params.colour);
    for (var i = 0u; i < 4u; i++) { word |= weigh(part(r, i), part(g, i), part(b, i)) << (8u * i); }
#else
    // The last pixels may fill only a part of them.
    let last = params.words - 1u;
#if ALPHA
    for (var i = 0u; i < 4u; i++) {
        let pixel = input[min(4u * at + i, last)];
        word |= weigh(part(pixel, 0u), part(pixel, 1u), part(pixel, 2u)) << (8u * i);
    }
#else
    let a = input[3u * at];
    let b = input[min(3u * at + 1u, last)];
    let c = input[min(3u * at + 2u, last)];
    word = weigh(part(a, 0u), part(a, 1u), part(a, 2u));
    word |= weigh(part(a, 3u), part(b, 0u), part(b, 1u)) << 8u;
    word |= weigh(part(b, 2u), part(b, 3u), part(c, 0u)) << 16u;
    word |= weigh(part(c, 1u), part(c, 2u), part(c, 3u)) << 24u;
#endif
#endif
    put_word(at, word);
}
