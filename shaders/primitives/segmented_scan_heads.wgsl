// Where the segments of a segmented scan begin: a word an element, not 0 at the first of a segment. Bound as
// the elements are: as vec4, and the last as words.
#if REDUCE
@group(0) @binding(4) var<storage, read> heads: array<vec4<u32>>;
@group(0) @binding(5) var<storage, read> heads_tail: array<u32>;
#else
@group(0) @binding(5) var<storage, read> heads: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> heads_tail: array<u32>;
#endif

// Of the elements `4 q ..`: bit i is set where element i begins a segment.
fn four_heads(q: u32) -> u32 {
    var quad = vec4<u32>(0u);
    if q < PACK * params.quads {
        quad = heads[q];
    } else {
        for (var i = 0u; i < 4u; i++) {
            let at = min(4u * q + i, params.elements - 1u);
            quad[i] = heads_tail[at - min(at, QUAD * params.quads)];
        }
    }
    let bits = vec4<u32>(quad != vec4<u32>(0u)) << vec4<u32>(0u, 1u, 2u, 3u);
    return bits.x | bits.y | bits.z | bits.w;
}

// Of the elements of quad `q`. The first of all begins a segment, whatever its flag.
fn head_bits(q: u32) -> u32 {
    var bits = four_heads(PACK * q);
    if PACK == 2u {
        bits |= four_heads(PACK * q + 1u) << 4u;
    }
    return bits | u32(q == 0u && params.first_element == 0u);
}
