// Joins the two parts of each segment that lies in two neighbouring tiles, in place. A workgroup visits SEAMS seams and
// lists those with work; LANES threads merge the segment of one. Segments are left out that are longer than
// LANES * ITEMS, or as short as params.above or shorter; so are long ones. Algorithm: O. Green, R. McColl, D. Bader,
// GPU merge path (2012).
#import primitives/segmented_sort_ends
#import primitives/sort_key
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const LANES: u32 = 32u;
const ITEMS: u32 = 14u;
const SEAMS: u32 = 8u;

struct Params { n: u32, above: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> ends: array<u32>;
@group(0) @binding(2) var<storage, read_write> keys_out: array<Key>;
#if VALUES
@group(0) @binding(3) var<storage, read_write> values_out: array<u32>;
#endif

#if NETWORK
enable subgroups;
// The list of segments is the same for all lanes.
diagnostic(off, subgroup_uniformity);
const LOG_LANES: u32 = 5u;
const LOG_ITEMS: u32 = 4u;

fn number_of(key: Key) -> u32 { return key ^ FLIP; }

#for log in 1..LOG_ITEMS + 1
// Merges the parts of a segment by a bitonic network: lane i holds {1 << log} numbers, from number {1 << log} i on. The
// second part comes in descending order behind what stays last.
fn join_by_{1 << log}(begin: u32, end: u32, middle: u32, lane: u32) {
    let size = end - begin;
    let of_first = middle - begin;
#for e in 1 << log
    let at_{e} = {1 << log}u * lane + {e}u;
    let from_end_{e} = (LANES << {log}u) - 1u - at_{e};
    var x_{e} = 4294967295u; // stays behind the others
    if at_{e} < of_first {
        x_{e} = number_of(keys_out[begin + at_{e}]);
    } else if from_end_{e} < size - of_first {
        x_{e} = number_of(keys_out[middle + from_end_{e}]);
    }
#end
#for step in LOG_LANES
    {
        let keeps_least = (lane & {1 << (LOG_LANES - 1 - step)}u) == 0u;
#for e in 1 << log
        let other_{e} = subgroupShuffleXor(x_{e}, {1 << (LOG_LANES - 1 - step)}u);
        x_{e} = select(other_{e}, x_{e}, (x_{e} < other_{e}) == keeps_least);
#end
    }
#end
    var least: u32;
#for step in log
#for i in 1 << log
#if (i >> (log - 1 - step)) % 2 == 0
    least = min(x_{i}, x_{i + (1 << (log - 1 - step))});
    x_{i + (1 << (log - 1 - step))} = max(x_{i}, x_{i + (1 << (log - 1 - step))});
    x_{i} = least;
#endif
#end
#end
#for e in 1 << log
    if at_{e} < size { keys_out[begin + at_{e}] = x_{e} ^ FLIP; }
#end
}

#end
#endif
fn goes_first(later: Key, earlier: Key) -> bool { return order(later) < order(earlier); }

// Where the segment begins and ends, and the seam between.
var<workgroup> wg_work: array<vec3<u32>, SEAMS>;
var<workgroup> wg_listed: atomic<u32>;
var<workgroup> wg_count: u32;

// Lists the segment that straddles a seam, if it is for this dispatch.
fn list_seam(seam: u32) {
    if seam >= tiles_there() { return; }
    let left = ends[seam - 1u];
    let right = ends[seam];
    if left == HEADLESS || right == HEADLESS { return; }
    let middle = seam * TILE;
    let begin = middle - TILE + last_head(left);
    let end = middle + first_head(right);
    // Nothing straddles the seam where a segment begins there.
    if end == middle || end - begin <= params.above || end - begin > LANES * ITEMS { return; }
    wg_work[atomicAdd(&wg_listed, 1u)] = vec3<u32>(begin, end, middle);
}

#if !NETWORK
// Merges the parts of a segment, which may be empty. All threads of the workgroup call it.
fn join_parts(begin: u32, end: u32, middle: u32, thread: u32) {
    let each = (end - begin + LANES - 1u) / LANES;
    let skipped = min(each * (thread % LANES), end - begin);
    let mine = min(each, end - begin - skipped);
#for i in ITEMS
    var key_{i}: Key;
#if VALUES
    var value_{i} = 0u;
#endif
#end
    if mine > 0u {
        // Of the first `skipped` results, `low` come from the left.
        var low = max(skipped + middle, end) - end;
        var high = min(skipped, middle - begin);
        while low < high {
            let half = (low + high) / 2u;
            if goes_first(keys_out[middle + skipped - 1u - half], keys_out[begin + half]) {
                high = half;
            } else {
                low = half + 1u;
            }
        }
        var left = begin + low;
        var right = middle + skipped - low;
#for i in ITEMS
        if {i}u < mine {
            let left_key = keys_out[left];
            let right_key = keys_out[min(right, end - 1u)];
            let takes_right = left >= middle || (right < end && goes_first(right_key, left_key));
            key_{i} = select(left_key, right_key, takes_right);
#if VALUES
            value_{i} = values_out[select(left, right, takes_right)];
#endif
            left += u32(!takes_right);
            right += u32(takes_right);
        }
#end
    }
    storageBarrier();
#for i in ITEMS
    if {i}u < mine {
        keys_out[begin + skipped + {i}u] = key_{i};
#if VALUES
        values_out[begin + skipped + {i}u] = value_{i};
#endif
    }
#end
}

#endif
@compute @workgroup_size(WORKGROUP_SIZE)
fn segmented_sort_seams(
#put thread_builtins(thread, NETWORK)
) {
    if thread == 0u { atomicStore(&wg_listed, 0u); }
    workgroupBarrier();
    if thread < SEAMS { list_seam(workgroup_index(group) * SEAMS + thread + 1u); }
    workgroupBarrier();
#if NETWORK
    let count = atomicLoad(&wg_listed);
    for (var i = sub_id; i < count; i += sub_count) {
        let work = wg_work[i];
        let size = work.y - work.x;
#for log in 1..LOG_ITEMS + 1
#if log < LOG_ITEMS
        if size <= LANES << {log}u {
            join_by_{1 << log}(work.x, work.y, work.z, sub_lane);
            continue;
        }
#else
        join_by_{1 << log}(work.x, work.y, work.z, sub_lane);
#endif
#end
    }
#else
    if thread == 0u { wg_count = atomicLoad(&wg_listed); }
    let count = workgroupUniformLoad(&wg_count);
    for (var first = 0u; first < count; first += WORKGROUP_SIZE / LANES) {
        let i = first + thread / LANES;
        var work = vec3<u32>(0u);
        if i < count { work = wg_work[i]; }
        join_parts(work.x, work.y, work.z, thread);
    }
#endif
}
