// The four pixels of the group that begins at `p`, each from a sum of its own.
#import conv/byte_input
#import image/blur_average

fn blur_group(p: vec2<u32>) {
    var word = 0u;
    for (var i = 0u; i < min(PACK, params.w - p.x); i++) {
        let q = vec2(p.x + i, p.y);
        word |= average(total(q), q) << (8u * i);
    }
    put_word(vec3(p, 0u), word);
}
