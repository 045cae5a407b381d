// The segment of an item, by binary search of rising pointers. A workgroup takes a tile of neighbouring items: two
// threads search all segments, the others search between their results.
const ITEMS_PER_THREAD: u32 = 4u;
const TILE: u32 = WORKGROUP_SIZE * ITEMS_PER_THREAD;
const POINTERS_BINDING: u32 = 1u;

@group(0) @binding(POINTERS_BINDING) var<storage, read> ptrs: array<u32>;

var<workgroup> wg_bounds: array<u32, 2>;

fn segment_between(at: u32, first: u32, last: u32) -> u32 {
    var low = first;
    var high = last;
    while low < high {
        let middle = low + (high - low) / 2u;
        if ptrs[middle + 1u] <= at {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    return low;
}

// For the tile from `begin` on. All threads of the workgroup call it.
fn find_bounds(lane: u32, begin: u32) {
    if lane < 2u {
        let at = select(begin, min(begin + TILE, params.count) - 1u, lane == 1u);
        wg_bounds[lane] = segment_between(at, 0u, params.segments - 1u);
    }
    workgroupBarrier();
}

fn segment_of(at: u32) -> u32 { return segment_between(at, wg_bounds[0], wg_bounds[1]); }
