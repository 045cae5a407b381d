// Finds the segments of a scan by bits: bit i % 32 of word i / 32 is set where element i begins a segment, counted over
// the whole array, whatever the chunk of a dispatch is.
// The importer declares VEC4_ITEMS, elements of a vec4, and `params` with `elements` and `first_element`.
#if REDUCE
@group(0) @binding(4) var<storage, read> heads: array<u32>;
#else
@group(0) @binding(5) var<storage, read> heads: array<u32>;
#endif

// Of the elements of vec4 `q`: bit i is set where element i begins a segment. The first of all begins one.
fn head_bits(q: u32) -> u32 {
    let at = params.first_element + min(VEC4_ITEMS * q, (params.elements - 1u) / VEC4_ITEMS * VEC4_ITEMS);
    return ((heads[at / 32u] >> (at % 32u)) & ((1u << VEC4_ITEMS) - 1u)) | u32(at == 0u);
}

// The same of a vec4 beyond the whole ones. What begins beyond the end harms nobody.
fn head_bits_at_end(q: u32) -> u32 { return head_bits(q); }
