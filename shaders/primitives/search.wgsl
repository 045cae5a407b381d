// Bisection in sorted elements. The importer declares `fn is_before(x: u32, needle: u32) -> bool`, on keys; the
// position found is that of the first element that is not. With TREE, search_tree has written the last key of each 8
// elements, of each 64, and so on: a search reads 8 neighbours of each level, and the highest level lies in workgroup
// memory.
#import element/f32 as element
#import primitives/search_key
#import primitives/search_levels
#import workgroup/index
#import dispatch/extent

#put extent(params.needles, 0u)

const WORKGROUP_SIZE: u32 = 256u;
// Needles of a thread.
const NEEDLES: u32 = 1u;

@group(0) @binding(1) var<storage, read> sorted: array<u32>;
@group(0) @binding(2) var<storage, read> needles: array<u32>;
@group(0) @binding(3) var<storage, read_write> output: array<u32>;

fn sorted_key(i: u32) -> u32 { return search_key(decode(sorted[i / PACK], i % PACK)); }

#block bisect(name, key_at)
// Searches elements below `len`.
fn {name}(needle: u32, len: u32) -> u32 {
    var begin = 0u;
    var end = len;
    while begin < end {
        let middle = begin + (end - begin) / 2u;
        if is_before({key_at}(middle), needle) { begin = middle + 1u; } else { end = middle; }
    }
    return begin;
}
#end
#if TREE
@group(0) @binding(4) var<storage, read> tree: array<u32>;

const TOP: u32 = 2048u;
var<workgroup> wg_top: array<u32, TOP>;

fn top_key(i: u32) -> u32 { return wg_top[i]; }
#put bisect(find_top, top_key)
fn tree_key(i: u32) -> u32 { return tree[i]; }

#block descend(name, key_at)
// The same among the 8 elements from 8 * above on, of `len` that begin at `first`. The last is not before the needle.
fn {name}(needle: u32, above: u32, first: u32, len: u32) -> u32 {
    let last = min(8u * above + 7u, len - 1u);
    var at = min(8u * above, last);
#for halving in 3
    {
        let probe = at + {(4 >> halving) - 1}u;
        let passes = is_before({key_at}(first + min(probe, last)), needle) & (probe < last);
        at += select(0u, {4 >> halving}u, passes);
    }
#end
    return at;
}
#end
#put descend(find_in_tree, tree_key)
#put descend(find_in_sorted, sorted_key)

fn find(needle: u32) -> u32 {
    var len = level_len(params.levels);
    var at = find_top(needle, len);
    if at == len { return sorted_len(); }
    var first = top_begin();
    for (var level = params.levels - 1u; level > 0u; level--) {
        len = level_len(level);
        first -= len;
        at = find_in_tree(needle, at, first, len);
    }
    return find_in_sorted(needle, at, 0u, sorted_len());
}
#else
#put bisect(find_sorted, sorted_key)
fn find(needle: u32) -> u32 { return find_sorted(needle, sorted_len()); }
#endif

fn search(workgroup: u32, lane: u32) {
#if TREE
    let len = min(level_len(params.levels), TOP);
    let begin = top_begin();
    for (var i = lane; i < len; i += WORKGROUP_SIZE) { wg_top[i] = tree[begin + i]; }
    workgroupBarrier();
#endif
    for (var k = 0u; k < NEEDLES; k++) {
        let i = (workgroup * NEEDLES + k) * WORKGROUP_SIZE + lane;
        if i < extent() { output[i] = find(search_key(decode(needles[i / PACK], i % PACK))); }
    }
}
