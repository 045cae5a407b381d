// Finds the medians of four windows by a binary search over the bits of keys, the highest bit first.
// Requires `below` of its importer: the number of keys of each window at `place` that are less than `next`.
fn medians(place: vec3<u32>) -> Keys {
    let size = 2u * params.radius_x + 1u;
    let rank = Keys(size * size / 2u); // keys that the sorted window has before its median
    var found = Keys();
    for (var bit = 1u << (KEY_BITS - 1u); bit > 0u; bit >>= 1u) {
        let next = found | Keys(bit);
        found = select(found, next, below(place, next, size) <= rank);
    }
    return found;
}
