// Compaction in one pass: D. Merrill and M. Garland, Single-pass Parallel Prefix Scan with Decoupled
// Look-back (2016). A tile posts its count, then the count of all up to it. A tile that finds one before it
// not posted after SPINS looks counts that tile itself, so that no workgroup depends on another's progress
// (T. Smith, R. Levien, J. D. Owens, Decoupled Fallback, 2025). A post is one word, state and count at once.
// Requires subgroups and fewer than 2^30 elements.
#import primitives/compact_tile
#import primitives/compact_emit
// The loops of look_back end by values that subgroup operations made the same on all lanes.
diagnostic(off, subgroup_uniformity);

const COUNTS_BINDING: u32 = 3u;
const SPINS: u32 = 16u;
const STATE: u32 = 0xc0000000u;
const TOTAL: u32 = 0x40000000u;
const PREFIX: u32 = 0x80000000u;
const COUNT: u32 = 0x3fffffffu;
const DONE: u32 = 0xffffffffu;

// Tickets, then a word for each tile.
@group(0) @binding(COUNTS_BINDING) var<storage, read_write> posts: array<atomic<u32>>;
@group(0) @binding(COUNTS_BINDING + 1u) var<storage, read_write> count_of_all: array<u32>;

// For tests: one tile in LEAVE_OUT posts nothing, as if its workgroup had been stopped.
#if LEAVING_OUT
const LEAVE_OUT: u32 = 2u;
fn posts_are_made(tile: u32) -> bool { return (tile + 1u) % LEAVE_OUT != 0u; }
#else
fn posts_are_made(tile: u32) -> bool { return true; }
#endif

var<workgroup> wg_tile: u32;
var<workgroup> wg_before: u32;
var<workgroup> wg_blocked: u32;

// Kept elements before `tile`, which has `own`.
fn look_back(tile: u32, own: u32, sub_lane: u32, sub_size: u32, sub_id: u32, sub_count: u32) -> u32 {
    let leader = sub_id == 0u && sub_lane == 0u;
    if leader && posts_are_made(tile) {
        atomicStore(&posts[1u + tile], own | select(TOTAL, PREFIX, tile == 0u));
    }
    if tile == 0u {
        return 0u;
    }
    // Of the first subgroup: `before` counts the tiles `look .. tile`.
    var look = tile;
    var before = 0u;
    loop {
        if sub_id == 0u {
            var blocked = DONE;
            var spins = 0u;
            loop {
                // Lane 0 sees the nearest tile; before all tiles lies nothing.
                var post = PREFIX;
                if sub_lane < look {
                    post = atomicLoad(&posts[look - sub_lane]);
                }
                let prefix = subgroupMin(select(sub_size, sub_lane, (post & STATE) == PREFIX));
                let missing = subgroupMin(select(sub_size, sub_lane, (post & STATE) == 0u));
                let usable = min(missing, prefix + 1u);
                before += subgroupAdd(select(0u, post & COUNT, sub_lane < usable));
                look -= min(usable, look);
                if prefix < missing {
                    break;
                }
                spins = select(0u, spins + 1u, usable == 0u);
                if spins > SPINS {
                    blocked = look - 1u;
                    break;
                }
            }
            if sub_lane == 0u {
                if blocked == DONE && posts_are_made(tile) {
                    atomicStore(&posts[1u + tile], PREFIX | (before + own));
                }
                wg_before = before;
                wg_blocked = blocked;
            }
        }
        let blocked = workgroupUniformLoad(&wg_blocked);
        if blocked == DONE {
            break;
        }
        let items = load_tile(blocked, sub_lane, sub_size, sub_id);
        let count = count_tile(items, sub_lane, sub_size, sub_id, sub_count).y;
        if leader {
            // What it posted itself in the meantime says as much or more.
            atomicMax(&posts[1u + blocked], TOTAL | count);
        }
    }
    return wg_before;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn scatter_kept(
    @builtin(local_invocation_index) lane: u32,
    @builtin(subgroup_invocation_id) sub_lane: u32,
    @builtin(subgroup_size) sub_size: u32,
    @builtin(subgroup_id) sub_id: u32,
    @builtin(num_subgroups) sub_count: u32,
) {
    // Tickets, and not workgroup indices: the tiles before this one have begun.
    if lane == 0u {
        wg_tile = atomicAdd(&posts[0], 1u);
    }
    let tile = workgroupUniformLoad(&wg_tile);
    if tile >= params.tiles {
        return;
    }
    let items = load_tile(tile, sub_lane, sub_size, sub_id);
    let counts = count_tile(items, sub_lane, sub_size, sub_id, sub_count);
    let before = look_back(tile, counts.y, sub_lane, sub_size, sub_id, sub_count);
    if lane == 0u && tile + 1u == params.tiles {
        count_of_all[0] = before + counts.y;
    }
    emit_tile(items, before + counts.x, sub_lane);
}
