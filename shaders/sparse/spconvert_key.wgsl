// Sort keys: a major index above a minor one, in one word, or in two with the low word first.
#if WIDE
alias Key = vec2<u32>;

fn pack(major: u32, minor: u32) -> Key {
    // A shift by 32 is undefined.
    if params.minor_bits > 31u {
        return vec2<u32>(minor, major);
    }
    return vec2<u32>(minor | (major << params.minor_bits), (major >> 1u) >> (31u - params.minor_bits));
}

fn major_of(key: Key) -> u32 {
    if params.minor_bits > 31u {
        return key.y;
    }
    return (key.x >> params.minor_bits) | ((key.y << 1u) << (31u - params.minor_bits));
}

fn minor_of(key: Key) -> u32 {
    if params.minor_bits > 31u {
        return key.x;
    }
    return key.x & ((1u << params.minor_bits) - 1u);
}
#else
alias Key = u32;

fn pack(major: u32, minor: u32) -> Key { return minor | (major << params.minor_bits); }

fn major_of(key: Key) -> u32 { return key >> params.minor_bits; }

fn minor_of(key: Key) -> u32 { return key & ((1u << params.minor_bits) - 1u); }
#endif
