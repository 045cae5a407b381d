// Finds the segments of a scan by key: a key that differs from the one before begins one. Keys have one word an element
// and are bound like the elements: as vec4, and the last as words. They are all of the array, in one dispatch.
// The importer declares PACK, elements of a word; VEC4_ITEMS, elements of a vec4; and `params` with `vec4s` and
// `elements`.
#import primitives/differs

#if REDUCE
@group(0) @binding(4) var<storage, read> keys: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> keys_tail: array<u32>;
#else
@group(0) @binding(5) var<storage, read> keys: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> keys_tail: array<u32>;
#endif

fn changes(x: vec4<u32>, before: u32) -> u32 {
    return u32(differs(x.x, before)) | (u32(differs(x.y, x.x)) << 1u) | (u32(differs(x.z, x.y)) << 2u)
        | (u32(differs(x.w, x.z)) << 3u);
}

// Of the elements of whole vec4 `q`: bit i is set where element i begins a segment.
fn head_bits(q: u32) -> u32 {
    let first = keys[PACK * q];
    var bits = changes(first, keys[max(PACK * q, 1u) - 1u].w) | u32(q == 0u);
    if PACK == 2u { bits |= changes(keys[PACK * q + PACK - 1u], first.w) << 4u; }
    return bits;
}

fn key_at_end(e: u32) -> u32 { return keys_tail[min(e, params.elements - 1u) - VEC4_ITEMS * params.vec4s]; }

// The same of a vec4 beyond the whole ones. What begins beyond the end harms nobody.
fn head_bits_at_end(q: u32) -> u32 {
    var before = 0u;
    if q > params.vec4s {
        before = key_at_end(VEC4_ITEMS * q - 1u);
    } else if q > 0u {
        before = keys[PACK * q - 1u].w;
    }
    var bits = u32(q == 0u);
    for (var e = VEC4_ITEMS * q; e < VEC4_ITEMS * (q + 1u); e += 4u) {
        let four = vec4<u32>(key_at_end(e), key_at_end(e + 1u), key_at_end(e + 2u), key_at_end(e + 3u));
        bits |= changes(four, before) << (e - VEC4_ITEMS * q);
        before = four.w;
    }
    return bits;
}
