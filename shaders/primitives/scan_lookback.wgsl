// Single pass: D. Merrill and M. Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back (2016).
// A tile posts its total, then its inclusive prefix; a tile that finds one before it not posted after SPINS
// looks totals that tile itself, so that no workgroup depends on another's progress (T. Smith, R. Levien,
// J. D. Owens, Decoupled Fallback, 2025). Only relaxed 32-bit atomics: a word is value and state at once.
// The importer has Item, Acc and their functions, POSTS_BINDING, and total_of_tile.
#if SUBGROUPS
// Tint takes the minimum over a subgroup for something that its lanes might not agree on.
diagnostic(off, subgroup_uniformity);
#endif

const SPINS: u32 = 16u;
const POSTS_BINDING: u32 = 5u;
const NOT_READY: u32 = 0u;
const TOTAL: u32 = 1u;
const PREFIX: u32 = 2u;
const DONE: u32 = 0xffffffffu;
// A value of these bits is never posted, which is right, if slow; so they are those of a NaN that no
// arithmetic gives, and no likely integer's.
const SPARE: u32 = 0xffa5c3e1u;

struct Seen { state: u32, value: Acc }

// A ticket; for each tile its prefix; for each its total; for each dispatch what lies before it.
// 0 is not ready.
@group(0) @binding(POSTS_BINDING) var<storage, read_write> posts: array<atomic<u32>>;

fn take_ticket() -> u32 { return atomicAdd(&posts[0], 1u); }

fn peek_word(at: u32, state: u32) -> Seen {
    let word = atomicLoad(&posts[at]);
    return Seen(select(NOT_READY, state, word != 0u), bitcast<Acc>(word ^ SPARE));
}

// What tile `local` of this dispatch has posted.
fn peek(local: u32) -> Seen {
    let at = 1u + params.first_tile + local;
    let prefix = peek_word(at, PREFIX);
    if prefix.state == PREFIX {
        return prefix;
    }
    return peek_word(at + params.all_tiles, TOTAL);
}

fn post(local: u32, seen: Seen) {
    let at = 1u + params.first_tile + local + select(params.all_tiles, 0u, seen.state == PREFIX);
    atomicStore(&posts[at], bitcast<u32>(seen.value) ^ SPARE);
}

// What lies before all tiles of this dispatch: what the one before it handed over.
fn before_all() -> Acc {
    if params.piece == 0u {
        return op_identity();
    }
    return bitcast<Acc>(atomicLoad(&posts[1u + 2u * params.all_tiles + params.piece]));
}

fn hand_over(value: Acc) {
    atomicStore(&posts[2u + 2u * params.all_tiles + params.piece], bitcast<u32>(value));
}

// What is known of a tile by its total alone. One that holds a head leaves the same behind whatever lies before it.
fn known(local: u32, total: Item) -> Seen {
    if has_head(total) {
        return Seen(PREFIX, value_of(total));
    }
    if local == 0u {
        return Seen(PREFIX, op_combine(before_all(), value_of(total)));
    }
    return Seen(TOTAL, value_of(total));
}

// Whether the tile posts at all: for tests, one in LEAVE_OUT does not, as if its workgroup had been stopped.
#if LEAVING_OUT
const LEAVE_OUT: u32 = 2u;
fn posts_are_made(local: u32) -> bool { return (local + 1u) % LEAVE_OUT != 0u; }
#else
fn posts_are_made(local: u32) -> bool { return true; }
#endif

fn post_total(local: u32, total: Item) {
    if posts_are_made(local) {
        post(local, known(local, total));
    }
}

fn post_prefix(local: u32, carry: Acc, total: Item) {
    var seen = known(local, total);
    if seen.state == TOTAL {
        seen = Seen(PREFIX, op_combine(carry, seen.value));
        if posts_are_made(local) {
            post(local, seen);
        }
    }
    if local + 1u == params.tiles {
        hand_over(seen.value);
    }
}

var<workgroup> wg_carry: Acc;

// What lies before tile `local` of this dispatch, whose own total is `total`.
#if SUBGROUPS
var<workgroup> wg_blocked: u32;

fn look_back(local: u32, total: Item, sub_lane: u32, sub_size: u32, sub_id: u32, sub_count: u32) -> Acc {
    if sub_id == 0u && sub_lane == 0u {
        post_total(local, total);
    }
    // Of the first subgroup: the tiles `look .. local` are in `carry`; nothing else is before them, if `ended`.
    var look = local;
    var carry = op_identity();
    var ended = false;
    loop {
        if sub_id == 0u {
            var spins = 0u;
            while !ended && spins <= SPINS {
                // Lane 0 sees the nearest tile.
                var seen = Seen(PREFIX, op_identity());
                if sub_lane < look {
                    seen = peek(look - 1u - sub_lane);
                } else if sub_lane == look {
                    seen.value = before_all();
                }
                let prefix = subgroupMin(select(sub_size, sub_lane, seen.state == PREFIX));
                let missing = subgroupMin(select(sub_size, sub_lane, seen.state == NOT_READY));
                ended = prefix < missing;
                let usable = select(missing, prefix + 1u, ended);
                spins += 1u;
                if usable > 0u {
                    let value = select(op_identity(), seen.value, sub_lane < usable);
                    carry = op_combine(join_far_to_near(value, sub_lane, sub_size), carry);
                    look -= min(usable, look);
                    spins = 0u;
                }
            }
            if sub_lane == 0u {
                if ended {
                    post_prefix(local, carry, total);
                }
                wg_carry = carry;
                wg_blocked = select(look, DONE, ended);
            }
        }
        let blocked = workgroupUniformLoad(&wg_blocked);
        if blocked == DONE {
            break;
        }
        let other = known(blocked - 1u, total_of_tile(blocked - 1u, sub_lane, sub_size, sub_id, sub_count));
        if sub_id == 0u {
            if sub_lane == 0u {
                post(blocked - 1u, other);
            }
            carry = op_combine(other.value, carry);
            ended = other.state == PREFIX;
            look = blocked - 1u;
        }
    }
    return wg_carry;
}

// The total of a value a lane, where lane 0 comes last.
fn join_far_to_near(value: Acc, lane: u32, size: u32) -> Acc {
#if NATIVE_ADD
    return subgroupAdd(value);
#else
    var total = value;
    for (var mask = 1u; mask < size; mask *= 2u) {
        let other = subgroupShuffleXor(total, mask);
        if (lane & mask) == 0u {
            total = op_combine(other, total);
        } else {
            total = op_combine(total, other);
        }
    }
    return total;
#endif
}
#else
const WINDOW: u32 = min(32u, WORKGROUP_SIZE);
var<workgroup> wg_seen: array<Seen, WINDOW>;
// How far back the workgroup has looked, and what it found there.
var<workgroup> wg_next: vec2<u32>;

fn look_back(local: u32, total: Item, lane: u32) -> Acc {
    if lane == 0u {
        post_total(local, total);
    }
    // The tiles `look .. local` are in lane 0's `carry`; nothing else is before them, if `ended`.
    var look = local;
    var carry = op_identity();
    var ended = false;
    loop {
        if lane < WINDOW {
            // Lane 0 sees the nearest tile.
            var seen = Seen(PREFIX, op_identity());
            for (var spins = 0u; lane < look && spins <= SPINS; spins++) {
                seen = peek(look - 1u - lane);
                if seen.state != NOT_READY {
                    break;
                }
            }
            if lane == look {
                seen.value = before_all();
            }
            wg_seen[lane] = seen;
        }
        workgroupBarrier();
        if lane == 0u {
            var state = select(TOTAL, PREFIX, ended);
            for (var i = 0u; i < WINDOW && state == TOTAL; i++) {
                let seen = wg_seen[i];
                state = seen.state;
                if state != NOT_READY {
                    carry = op_combine(seen.value, carry);
                    look -= min(1u, look);
                }
            }
            if state == PREFIX {
                post_prefix(local, carry, total);
            }
            wg_carry = carry;
            wg_next = vec2<u32>(look, state);
        }
        let next = workgroupUniformLoad(&wg_next);
        look = next.x;
        if next.y == PREFIX {
            break;
        }
        if next.y == NOT_READY {
            look -= 1u;
            let other = known(look, total_of_tile(look, lane));
            if lane == 0u {
                post(look, other);
                carry = op_combine(other.value, carry);
                ended = other.state == PREFIX;
            }
        }
    }
    return wg_carry;
}
#endif
