// Keys and their digits. Keys move unchanged, so a NaN keeps its bits and its position among NaNs; order() gives each
// key the unsigned number by which it is sorted.
const RADIX: u32 = 256u;
const FLIP: u32 = 0u; // bits in which a key's words differ from its number (of floats, once the sign is dealt with)
const PAD: u32 = 4294967295u; // a word of a key that no other comes after

#if MAPPED
#import primitives/sort_mapped as mapped
#endif

#if WIDE
alias Key = vec2<u32>;

fn digit_at(key: Key, shift: u32, mask: u32) -> u32 {
    let low = key.x ^ FLIP;
    let high = key.y ^ FLIP;
    // A shift by all 32 bits is not defined, hence in two steps.
    let below = (low >> (shift & 31u)) | ((high << 1u) << (31u - (shift & 31u)));
    return select(below, high >> (shift & 31u), shift >= 32u) & mask;
}
#else
alias Key = u32;

fn order(key: Key) -> u32 {
#if HALVES
    // A float of 16 bits in the lower half of the word.
    let sign = select(0x8000u, 0xffffu, (key & 0x8000u) != 0u);
    return select(key ^ sign ^ FLIP, 0xffffffffu, (key & 0x7fffu) > 0x7c00u);
#else
#if FLOAT
    // Every NaN is the largest number, whichever way the rest is sorted.
    let sign = bitcast<u32>(bitcast<i32>(key) >> 31u);
    let number = key ^ (sign | 0x80000000u) ^ FLIP;
    return select(number, 0xffffffffu, (key & 0x7fffffffu) > 0x7f800000u);
#else
    return key ^ FLIP;
#endif
#endif
}

fn digit_at(key: Key, shift: u32, mask: u32) -> u32 { return (order(key) >> (shift & 31u)) & mask; }
#endif

// The key that is sorted for one of the input: in the first pass, with MAPPED, a function of it.
#if MAPPED
fn given_key(key: Key) -> Key { return mapped(key); }
#else
fn given_key(key: Key) -> Key { return key; }
#endif
