// Stores elements: one in a word or, with HALVES, two of 16 bits. Lanes that store together have consecutive places, so
// the first of two in a word stores both; at the ends of a row another thread has the other half.
#if HALVES
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<atomic<u32>>;

// Only this half: who has the other may store it at the same time.
fn store_half(place: u32, bits: u32) {
    let shift = 16u * (place % 2u);
    atomicAnd(&output[place / 2u], ~(0xffffu << shift));
    atomicOr(&output[place / 2u], bits << shift);
}

#if SUBGROUPS
#if LARGE_SUBGROUPS
fn above(sub_lane: u32) -> Lanes { return ~below(sub_lane + 1u); }
fn any_of(some: Lanes) -> bool { return any(some != vec4<u32>(0u)); }

fn lowest(some: Lanes) -> u32 {
    let each = select(vec4<u32>(128u), firstTrailingBit(some) + vec4<u32>(0u, 32u, 64u, 96u), some != vec4<u32>(0u));
    return min(min(each.x, each.y), min(each.z, each.w));
}
#else
fn above(sub_lane: u32) -> Lanes { return ~((below(sub_lane) << 1u) | 1u); }
fn any_of(some: Lanes) -> bool { return some != 0u; }
fn lowest(some: Lanes) -> u32 { return firstTrailingBit(some); }
#endif

fn store(place: u32, bits: u32, yes: bool) {
    let mask = ballot(yes);
    let after = mask & above(place_in_subgroup);
    let more = any_of(after);
    let next = subgroupShuffle(bits, select(place_in_subgroup, lowest(after), more));
    let first = place % 2u == 0u;
    if yes & first & more {
        atomicStore(&output[place / 2u], bits | (next << 16u));
    }
    if yes & select(!any_of(mask & below(place_in_subgroup)), !more, first) { store_half(place, bits); }
}
#else
fn store(place: u32, bits: u32, yes: bool) {
    if yes { store_half(place, bits); }
}
#endif
#else
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<u32>;

fn store(place: u32, bits: u32, yes: bool) {
    if yes { output[place] = bits; }
}
#endif
