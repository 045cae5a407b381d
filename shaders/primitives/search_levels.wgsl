// Parameters of a search, how many sorted elements there are (with SORTED_COUNTED the device knows), and the lengths of
// its tree: level 1 has a key for each 8 elements, level 2 for each 64.
struct Params {
    n: u32,
    needles: u32,
    levels: u32, // of the tree
    top: u32,    // keys below the highest level
}
@group(0) @binding(0) var<uniform> params: Params;

#if SORTED_COUNTED
const SORTED_LENGTH_BINDING: u32 = 4u;
@group(0) @binding(SORTED_LENGTH_BINDING) var<storage, read> sorted_length: array<u32>;

fn sorted_len() -> u32 { return min(params.n, sorted_length[0]); }
#else
fn sorted_len() -> u32 { return params.n; }
#endif

fn level_len(level: u32) -> u32 {
    let n = sorted_len();
    return select(((n - 1u) >> (3u * level)) + 1u, 0u, n == 0u);
}

// Keys below the highest level.
fn top_begin() -> u32 {
#if SORTED_COUNTED
    var begin = 0u;
    for (var level = 1u; level < params.levels; level++) { begin += level_len(level); }
    return begin;
#else
    return params.top;
#endif
}
