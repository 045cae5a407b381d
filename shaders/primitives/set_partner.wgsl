// Whether an element of a sorted array has a partner in a second one: the k-th of equal elements has the k-th of those
// equal to it there, if they are so many. The importer declares `fn keep4`.
#import primitives/search_key

@group(0) @binding(2) var<storage, read> others: array<u32>;
#if LIMITED
@group(0) @binding(4) var<storage, read> length_of_others: array<u32>;

fn others_there() -> u32 { return min(params.others, length_of_others[0]); }
#else
fn others_there() -> u32 { return params.others; }
#endif

fn own_key(i: u32) -> u32 { return search_key(decode(load1(i), 0u)); }
fn other_key(i: u32) -> u32 { return search_key(decode(others[i / PACK], i % PACK)); }

// The others below the thread's last element: the next are searched from there on.
var<private> others_below: u32;

// How far ahead a thread looks first, for four elements: they are 32 apart if a subgroup has as many lanes.
const REACH: u32 = 160u;

fn begin_keeping(first: u32) { others_below = 0u; }

fn others4(at: vec4<u32>) -> vec4<u32> {
    return vec4<u32>(other_key(at.x), other_key(at.y), other_key(at.z), other_key(at.w));
}

// Elements below each key among the others, at least `others_below`. The keys ascend.
fn find4(keys: vec4<u32>) -> vec4<u32> {
    // Steps grow until one passes the place of the last.
    let begin = others_below;
    var end = others_there();
    var passed = begin;
    var step = REACH;
    while step < end - passed {
        if other_key(passed + step - 1u) >= keys.w {
            end = passed + step - 1u;
            break;
        }
        passed += step;
        step *= 4u;
    }
    // Four bisections at once, so that their loads are in flight together.
    var low = vec4<u32>(begin);
    if end > begin {
        for (var size = end - begin; size > 0u; size /= 2u) {
            let probe = low + vec4<u32>(size - size / 2u - 1u);
            low = select(low, probe + vec4<u32>(1u), others4(probe) < keys);
        }
    }
    return low;
}

// Elements before `at` that equal it, one behind the other.
fn equals_before(at: u32, key: u32) -> u32 {
    var begin = at;
    var step = 1u;
    while step <= begin && own_key(begin - step) == key {
        begin -= step;
        step *= 2u;
    }
    while step > 1u {
        step /= 2u;
        if step <= begin && own_key(begin - step) == key { begin -= step; }
    }
    return at - begin;
}

fn partners4(at: vec4<u32>, bits: vec4<u32>) -> vec4<bool> {
    let keys = vec4<u32>(
        search_key(decode(bits.x, 0u)), search_key(decode(bits.y, 0u)),
        search_key(decode(bits.z, 0u)), search_key(decode(bits.w, 0u)),
    );
    if others_there() == 0u { return vec4<bool>(false); }
    var places = find4(keys);
    others_below = places.w;
    let before = max(at, vec4<u32>(1u)) - vec4<u32>(1u);
    let neighbours = vec4<u32>(own_key(before.x), own_key(before.y), own_key(before.z), own_key(before.w));
    let repeats = (neighbours == keys) & (at > vec4<u32>(0u));
    if any(repeats) {
        places += vec4<u32>(
            equals_before(at.x, keys.x), equals_before(at.y, keys.y),
            equals_before(at.z, keys.z), equals_before(at.w, keys.w),
        );
    }
    let last = vec4<u32>(others_there() - 1u);
    return (places <= last) & (others4(min(places, last)) == keys);
}
