// Finds the segments of a segmented scan: one word an element, nonzero at the first element of a segment, bound like
// the elements: as vec4, and the last as words.
// The importer declares PACK, elements of a word; VEC4_ITEMS, elements of a vec4; and `params` with `vec4s`, `elements`
// and `first_element`.
#if REDUCE
@group(0) @binding(4) var<storage, read> heads: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> heads_tail: array<u32>;
#else
@group(0) @binding(5) var<storage, read> heads: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> heads_tail: array<u32>;
#endif

fn bits_of(flags: vec4<u32>) -> u32 {
    let bits = vec4<u32>(flags != vec4<u32>(0u)) << vec4<u32>(0u, 1u, 2u, 3u);
    return bits.x | bits.y | bits.z | bits.w;
}

// The first of all elements begins a segment, whatever its flag.
fn is_first(q: u32) -> u32 { return u32(q == 0u && params.first_element == 0u); }

// Of the elements of whole vec4 `q`: bit i is set where element i begins a segment.
fn head_bits(q: u32) -> u32 {
    var bits = bits_of(heads[PACK * q]);
    if PACK == 2u { bits |= bits_of(heads[PACK * q + PACK - 1u]) << 4u; }
    return bits | is_first(q);
}

fn head_at_end(e: u32) -> u32 { return heads_tail[min(e, params.elements - 1u) - VEC4_ITEMS * params.vec4s]; }

// The same of a vec4 beyond the whole ones.
fn head_bits_at_end(q: u32) -> u32 {
    var bits = 0u;
    for (var e = VEC4_ITEMS * q; e < VEC4_ITEMS * (q + 1u); e += 4u) {
        let four = vec4<u32>(head_at_end(e), head_at_end(e + 1u), head_at_end(e + 2u), head_at_end(e + 3u));
        bits |= bits_of(four) << (e - VEC4_ITEMS * q);
    }
    return bits | is_first(q);
}
