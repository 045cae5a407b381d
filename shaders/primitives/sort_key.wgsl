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

const FLIP_HIGH: u32 = FLIP; // of the upper word
const PAD_HIGH: u32 = PAD;

fn padding() -> Key { return Key(PAD, PAD_HIGH); }

fn order(key: Key) -> Key {
#if FLOAT
    let sign = bitcast<u32>(bitcast<i32>(key.y) >> 31u);
    let is_nan = (key.y & 0x7fffffffu) + u32(key.x != 0u) > 0x7ff00000u;
    return select(key ^ Key(sign, sign | 0x80000000u) ^ Key(FLIP), Key(0xffffffffu), is_nan);
#else
    return key ^ Key(FLIP, FLIP_HIGH);
#endif
}

fn digit_at(key: Key, shift: u32, mask: u32) -> u32 {
    let number = order(key);
    // A shift by all 32 bits is not defined, hence in two steps.
    let below = (number.x >> (shift & 31u)) | ((number.y << 1u) << (31u - (shift & 31u)));
    return select(below, number.y >> (shift & 31u), shift >= 32u) & mask;
}
#else
alias Key = u32;

fn padding() -> Key { return PAD; }

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
