// Elements of f16, written from numbers of f32 by groups of four elements of a row, to nearest, ties to even. With
// VECTORS groups do not straddle rows.
#import element/halves

const PACK: u32 = 4u;

#if VECTORS
@group(0) @binding(2) var<storage, read_write> output: array<vec2<u32>>;

fn put_group(p: vec3<u32>, group: vec4<f32>) {
    output[(p.z * params.h + p.y) * params.groups + p.x / PACK] =
        vec2(encode(group.x, group.y), encode(group.z, group.w));
}
#else
#import conv/stencil_words_out

// Stores the group that begins at `p`, which lies inside; elements after the row do not count.
fn put_group(p: vec3<u32>, group: vec4<f32>) {
    let first = (p.z * params.h + p.y) * params.w + p.x;
    let count = min(PACK, params.w - p.x);
    for (var i = 0u; i < count; i++) {
        let at = first + i;
        if at % 2u == 0u && i + 1u < count {
            put_bits(at / 2u, 0xffffffffu, encode(group[i], group[i + 1u]));
            i++;
        } else {
            let shift = 16u * (at % 2u);
            put_bits(at / 2u, 0xffffu << shift, encode(group[i], 0.0) << shift);
        }
    }
}
#endif
