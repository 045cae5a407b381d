// Whether an element of a sorted array has a partner in a second one: the k-th of equal elements has the k-th of those
// equal to it there, if they are so many. The importer declares `fn keep_one(at: u32, bits: u32) -> bool`.
#import primitives/search_key

@group(0) @binding(2) var<storage, read> others: array<u32>;

fn own_key(i: u32) -> u32 { return search_key(decode(load1(i), 0u)); }
fn other_key(i: u32) -> u32 { return search_key(decode(others[i / PACK], i % PACK)); }

#block bisect(name, key_at)
// Elements below `key` among the first `len`.
fn {name}(key: u32, len: u32) -> u32 {
    var begin = 0u;
    var end = len;
    while begin < end {
        let middle = begin + (end - begin) / 2u;
        if {key_at}(middle) < key { begin = middle + 1u; } else { end = middle; }
    }
    return begin;
}
#end
#put bisect(own_below, own_key)
#put bisect(others_below, other_key)

fn has_partner(at: u32, bits: u32) -> bool {
    let key = search_key(decode(bits, 0u));
    var partner = others_below(key, params.others);
    if at > 0u && own_key(at - 1u) == key { partner += at - own_below(key, at); }
    return partner < params.others && other_key(partner) == key;
}

fn keep4(at: vec4<u32>, bits: vec4<u32>) -> vec4<bool> {
    return vec4<bool>(
        keep_one(at.x, bits.x), keep_one(at.y, bits.y), keep_one(at.z, bits.z), keep_one(at.w, bits.w),
    );
}
