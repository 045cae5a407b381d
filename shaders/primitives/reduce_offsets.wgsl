// One result for each segment between offsets. `reduce_offsets_segments` gives each segment LANES threads, and lists
// the segments of more than params.limit elements, with a bit for each tile of TILE elements that lies in one.
// `reduce_offsets_tiles` reduces those tiles, a workgroup each, and `reduce_offsets_long` gives each listed segment a
// workgroup, which combines the totals of its tiles and the elements beside them. The list may have any order.
// ORDERED keeps the order of operands, for operators that do not commute: each thread walks its own range.
#import dispatch/extent
#import primitives/reduce_elements
#import workgroup/index
#if !SEGMENTS
#import workgroup/reduce
#endif

const WORKGROUP_SIZE: u32 = 256u;
const LANES: u32 = 4u;
const TILE: u32 = 4096u;
const AHEAD: u32 = 4u; // loads of a thread at once

struct Params {
    n: u32,
    segments: u32,
    limit: u32, // elements of a segment that is not listed
    tiles: u32,
    walkers: u32, // workgroups that share the listed segments
}
@group(0) @binding(0) var<uniform> params: Params;

// A count of listed segments, a bit for each tile, and the list.
#if SEGMENTS
@group(0) @binding(3) var<storage, read> offsets: array<u32>;
@group(0) @binding(4) var<storage, read_write> listed: array<atomic<u32>>;

// Segments: all, or as many as the device counts.
#put extent(params.segments, 0u)
#endif
#if TILES
@group(0) @binding(3) var<storage, read> listed: array<u32>;
#endif
#if LONG
@group(0) @binding(3) var<storage, read> offsets: array<u32>;
@group(0) @binding(4) var<storage, read> listed: array<u32>;
@group(0) @binding(5) var<storage, read> partials: array<Acc>;
#endif

fn list_begin() -> u32 { return 1u + (params.tiles + 31u) / 32u; }

// The items `first .. first + count` of thread `lane` among `lanes`: where they begin and end, and their distance.
struct Walk { at: u32, end: u32, step: u32 }

fn walk(first: u32, count: u32, lane: u32, lanes: u32) -> Walk {
#if ORDERED
    let each = (count + lanes - 1u) / lanes;
    return Walk(first + min(lane * each, count), first + min((lane + 1u) * each, count), 1u);
#else
    return Walk(first + min(lane, count), first + count, lanes);
#endif
}

#if !TILES
// The elements of a segment: offsets beyond the end count as the end.
struct Elements { begin: u32, count: u32 }

fn elements_of(segment: u32) -> Elements {
    let begin = min(offsets[segment], params.n);
    return Elements(begin, max(min(offsets[segment + 1u], params.n), begin) - begin);
}
#endif

#if SEGMENTS
#if LANES > 1
var<workgroup> wg_accs: array<Acc, WORKGROUP_SIZE>;
#endif

// Lists a segment, and marks the tiles that lie in it. Its LANES threads share the words of marks.
fn list(segment: u32, span: Elements, lane: u32) {
    if lane == 0u { atomicStore(&listed[list_begin() + atomicAdd(&listed[0], 1u)], segment); }
    let first = (span.begin + TILE - 1u) / TILE;
    let end = (span.begin + span.count) / TILE;
    if first >= end { return; }
    for (var word = first / 32u + lane; word <= (end - 1u) / 32u; word += LANES) {
        let low = max(first, 32u * word) - 32u * word;
        let high = min(end, 32u * word + 32u) - 32u * word;
        atomicOr(&listed[1u + word], (4294967295u << low) & (4294967295u >> (32u - high)));
    }
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn reduce_offsets_segments(
    @builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32,
) {
    let segment = workgroup_index(group) * (WORKGROUP_SIZE / LANES) + thread / LANES;
    let lane = thread % LANES;
    var span = Elements(0u, 0u);
    if segment < extent() { span = elements_of(segment); }
    let is_long = span.count > params.limit;
    var acc = op_identity();
    if is_long {
        list(segment, span, lane);
    } else {
        let mine = walk(span.begin, span.count, lane, LANES);
        // Several loads are in flight together.
        for (var at = mine.at; at < mine.end; at += AHEAD * mine.step) {
#for i in AHEAD
            let at_{i} = at + {i}u * mine.step;
            let there_{i} = min(at_{i}, mine.end - 1u);
            let item_{i} = load(there_{i}, there_{i});
#end
#for i in AHEAD
            if at_{i} < mine.end { acc = accumulate(acc, item_{i}); }
#end
        }
    }
#if LANES > 1
    wg_accs[thread] = acc;
    for (var stride = 1u; stride < LANES; stride *= 2u) {
        workgroupBarrier();
        if lane % (2u * stride) == 0u {
            wg_accs[thread] = op_combine(wg_accs[thread], wg_accs[thread + stride]);
        }
    }
    acc = wg_accs[thread];
#endif
    if lane == 0u && segment < extent() && !is_long { store(segment, acc); }
}
#endif

#if TILES
@compute @workgroup_size(WORKGROUP_SIZE)
fn reduce_offsets_tiles(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = workgroup_index(group);
    if tile >= params.tiles { return; }
    if ((listed[1u + tile / 32u] >> (tile % 32u)) & 1u) == 0u { return; }
    var acc = op_identity();
    let mine = walk(tile * TILE, TILE, lane, WORKGROUP_SIZE);
    for (var at = mine.at; at < mine.end; at += mine.step) { acc = accumulate(acc, load(at, at)); }
    let total = workgroup_reduce(acc, lane);
    if lane == 0u { store(tile, total); }
}
#endif

#if LONG
@compute @workgroup_size(WORKGROUP_SIZE)
fn reduce_offsets_long(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let count = min(listed[0], params.segments);
    for (var i = workgroup_index(group); i < count; i += params.walkers) {
        let segment = listed[list_begin() + i];
        let span = elements_of(segment);
        let end = span.begin + span.count;
        // Elements before the first whole tile, the tiles, and elements behind the last.
        let first = min((span.begin + TILE - 1u) / TILE, end / TILE);
        let tiles = end / TILE - first;
        let before = select(span.count, first * TILE - span.begin, tiles > 0u);
        let skipped = tiles * TILE - tiles;
        var acc = op_identity();
        let mine = walk(0u, span.count - skipped, lane, WORKGROUP_SIZE);
        for (var item = mine.at; item < mine.end; item += mine.step) {
            if item >= before && item < before + tiles {
                acc = op_combine(acc, partials[first + item - before]);
            } else {
                let at = span.begin + select(item, item + skipped, item >= before);
                acc = accumulate(acc, load(at, at));
            }
        }
        let total = workgroup_reduce(acc, lane);
        if lane == 0u { store(segment, total); }
    }
}
#endif
