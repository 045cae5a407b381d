// Finds segments by flags: one word an element, nonzero at the first element of a segment. They need no key.
#if !TOTALS
fn emit_label(run: u32, label: u32) {}
#endif

// Of the elements of a vec4: bit i is set where element i begins a segment.
fn head_bits(flags: vec4<u32>, before: u32) -> u32 {
    let bits = vec4<u32>(flags != vec4<u32>(0u)) << vec4<u32>(0u, 1u, 2u, 3u);
    return bits.x | bits.y | bits.z | bits.w;
}
