// Parameters of a search, and the lengths of its tree: level 1 has a key for each 8 elements, level 2 for each 64.
struct Params {
    n: u32,
    needles: u32,
    levels: u32, // of the tree
    top: u32,    // keys below the highest level
}
@group(0) @binding(0) var<uniform> params: Params;

fn level_len(level: u32) -> u32 { return select(((params.n - 1u) >> (3u * level)) + 1u, 0u, params.n == 0u); }
