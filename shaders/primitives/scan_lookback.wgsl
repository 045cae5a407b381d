// Single pass: D. Merrill and M. Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back (2016).
// A tile posts its total, then its inclusive prefix; a tile that finds one before it not posted after SPINS
// looks totals that tile itself from the input, so that no workgroup depends on another's progress
// (T. Smith, R. Levien, J. D. Owens, Decoupled Fallback, 2025). Only relaxed 32-bit atomics: a word is value
// and state at once; integers, which have no value to spare, come as halves (SPLIT) that must agree.
// COUNTED, a tile leaves heads behind beside its value: one more word, its state above 30 bits of the number.
#if SUBGROUPS
// Tint takes the minimum over a subgroup for something that its lanes might not agree on.
diagnostic(off, subgroup_uniformity);
#endif

const SPINS: u32 = 16u;
const NOT_READY: u32 = 0u;
const TOTAL: u32 = 1u;
const PREFIX: u32 = 2u;
const DONE: u32 = 0xffffffffu;

#if COUNTED
@group(0) @binding(CARRY_BINDING) var<storage, read_write> posts: array<atomic<u32>>;

// What a tile leaves behind.
alias Carry = Item;
fn carry_of(x: Item) -> Carry { return x; }
fn no_carry() -> Carry { return nothing(); }
fn join_carries(a: Carry, b: Carry) -> Carry { return join(a, b); }

const HEADS_MASK: u32 = 0x3fffffffu;
fn heads_place(tile: u32) -> u32 { return 1u + 2u * params.all_tiles + tile; }
// All who post this word agree on the number, so the later state is the greater word.
fn post_heads(tile: u32, state: u32, heads: u32) {
    atomicMax(&posts[heads_place(tile)], (state << 30u) | heads);
}
#else
#if HEADS
@group(0) @binding(7) var<storage, read_write> posts: array<atomic<u32>>;
#else
@group(0) @binding(5) var<storage, read_write> posts: array<atomic<u32>>;
#endif

// What a tile leaves behind.
alias Carry = Acc;
fn carry_of(x: Item) -> Carry { return value_of(x); }
fn no_carry() -> Carry { return op_identity(); }
fn join_carries(a: Carry, b: Carry) -> Carry { return op_combine(a, b); }
#endif

struct Seen { state: u32, value: Carry }

fn take_ticket() -> u32 { return atomicAdd(&posts[0], 1u); }

#if SPLIT
// Words 1 + 2 t and 2 + 2 t: the state above 16 bits of the value.
fn peek(tile: u32) -> Seen {
    let low = atomicLoad(&posts[1u + 2u * tile]);
    let high = atomicLoad(&posts[2u + 2u * tile]);
    let agree = (low >> 16u) == (high >> 16u);
    let value = bitcast<Acc>((low & 0xffffu) | (high << 16u));
#if COUNTED
    let heads = atomicLoad(&posts[heads_place(tile)]);
    let all_agree = agree && (low >> 16u) == (heads >> 30u);
    return Seen(select(NOT_READY, low >> 16u, all_agree), Item(value, heads & HEADS_MASK));
#else
    return Seen(select(NOT_READY, low >> 16u, agree), value);
#endif
}

fn post_value(tile: u32, state: u32, value: Acc) {
    let bits = bitcast<u32>(value);
    atomicStore(&posts[1u + 2u * tile], (state << 16u) | (bits & 0xffffu));
    atomicStore(&posts[2u + 2u * tile], (state << 16u) | (bits >> 16u));
}

// For another's tile: what it posted itself in the meantime stays. Both have the same total.
fn post_value_for(tile: u32, state: u32, value: Acc) {
    let bits = bitcast<u32>(value);
    atomicMax(&posts[1u + 2u * tile], (state << 16u) | (bits & 0xffffu));
    atomicMax(&posts[2u + 2u * tile], (state << 16u) | (bits >> 16u));
}
#else
// Words 1 + t for prefixes and, after those, one for each total; 0 is not ready. Totals of the same tile may
// round differently, so a value is one word, whole.
const SPARE: u32 = 0xffffffffu; // bits that no value has but a NaN

#if COUNTED
fn peek(tile: u32) -> Seen {
    let heads = atomicLoad(&posts[heads_place(tile)]);
    let word = atomicLoad(&posts[post_place(tile, heads >> 30u)]);
    let state = select(NOT_READY, heads >> 30u, word != 0u);
    return Seen(state, Item(bitcast<Acc>(word ^ SPARE), heads & HEADS_MASK));
}
#else
fn peek_word(at: u32, state: u32) -> Seen {
    let word = atomicLoad(&posts[at]);
    return Seen(select(NOT_READY, state, word != 0u), bitcast<Acc>(word ^ SPARE));
}

fn peek(tile: u32) -> Seen {
    let prefix = peek_word(1u + tile, PREFIX);
    if prefix.state == PREFIX {
        return prefix;
    }
    return peek_word(1u + params.all_tiles + tile, TOTAL);
}
#endif

fn encode_post(value: Acc) -> u32 {
    let bits = bitcast<u32>(value);
    return select(bits, 0x7fc00000u, bits == SPARE) ^ SPARE;
}

fn post_place(tile: u32, state: u32) -> u32 {
    return 1u + tile + select(params.all_tiles, 0u, state == PREFIX);
}

fn post_value(tile: u32, state: u32, value: Acc) {
    atomicStore(&posts[post_place(tile, state)], encode_post(value));
}

// For another's tile: what it posted itself in the meantime stays.
fn post_value_for(tile: u32, state: u32, value: Acc) {
    _ = atomicCompareExchangeWeak(&posts[post_place(tile, state)], 0u, encode_post(value));
}
#endif

#if COUNTED
fn post(tile: u32, state: u32, left: Carry) {
    post_value(tile, state, left.value);
    post_heads(tile, state, left.head);
}

fn post_for(tile: u32, state: u32, left: Carry) {
    post_value_for(tile, state, left.value);
    post_heads(tile, state, left.head);
}

fn total_state(tile: u32, total: Item) -> u32 { return select(TOTAL, PREFIX, tile == 0u); }
#else
fn post(tile: u32, state: u32, left: Carry) { post_value(tile, state, left); }
fn post_for(tile: u32, state: u32, left: Carry) { post_value_for(tile, state, left); }

// A tile that holds a head needs nothing before it to know what it leaves behind.
fn total_state(tile: u32, total: Item) -> u32 {
    return select(TOTAL, PREFIX, tile == 0u || has_head(total));
}
#endif

// Whether the tile posts at all: for tests, one in LEAVE_OUT does not, as if its workgroup had been stopped.
// The last of a dispatch must, since its input is gone for those that follow.
#if LEAVING_OUT
const LEAVE_OUT: u32 = 2u;
fn posts_are_made(tile: u32) -> bool {
    let next = tile - params.first_tile + 1u;
    return next % LEAVE_OUT != 0u || next == params.tiles;
}
#else
fn posts_are_made(tile: u32) -> bool { return true; }
#endif

var<workgroup> wg_carry: Carry;

// The workgroup's total of another tile of this dispatch, which its owner has not posted.
#if SUBGROUPS
fn fall_back(tile: u32, sub_lane: u32, sub_size: u32, sub_id: u32, sub_count: u32) {
    let local = tile - params.first_tile;
    let first = sub_id * sub_size * QUADS + sub_lane;
    var run = nothing();
    _ = scan_quads(&run, load_tile(local, first, sub_size), local, first, sub_size, sub_lane, sub_size);
    let total = join_subgroups(run, sub_lane, sub_size, sub_id, sub_count).all;
    if sub_id == 0u && sub_lane == 0u {
        post_for(tile, total_state(tile, total), carry_of(total));
    }
}
#else
fn fall_back(tile: u32, lane: u32) {
    let local = tile - params.first_tile;
    let first = lane * QUADS;
    var run = nothing();
    _ = scan_quads(&run, load_tile(local, first, 1u), local, first, 1u, lane, 1u);
    let total = workgroup_scan(run, lane).all;
    if lane == 0u {
        post_for(tile, total_state(tile, total), carry_of(total));
    }
}
#endif

// What the tile leaves to those behind it.
fn post_prefix(tile: u32, carry: Carry, total: Item) {
    if posts_are_made(tile) && total_state(tile, total) == TOTAL {
        post(tile, PREFIX, join_carries(carry, carry_of(total)));
    }
}

// What lies before tile `local` of this dispatch, whose own total is `total`.
#if SUBGROUPS
var<workgroup> wg_blocked: u32;

fn look_back(local: u32, total: Item, sub_lane: u32, sub_size: u32, sub_id: u32, sub_count: u32) -> Carry {
    let tile = params.first_tile + local;
    if sub_id == 0u && sub_lane == 0u && posts_are_made(tile) {
        post(tile, total_state(tile, total), carry_of(total));
    }
    if tile == 0u {
        return no_carry();
    }
    // Of the first subgroup: the tiles `look .. tile` are in `carry`.
    var look = tile;
    var carry = no_carry();
    loop {
        if sub_id == 0u {
            var blocked = DONE;
            var spins = 0u;
            loop {
                // Lane 0 sees the nearest tile; before all tiles lies nothing.
                var seen = Seen(PREFIX, no_carry());
                if sub_lane < look {
                    seen = peek(look - 1u - sub_lane);
                }
                let prefix = subgroupMin(select(sub_size, sub_lane, seen.state == PREFIX));
                let missing = subgroupMin(select(sub_size, sub_lane, seen.state == NOT_READY));
                let found = prefix < missing;
                let usable = select(missing, prefix + 1u, found);
                if usable > 0u {
                    var value = no_carry();
                    if sub_lane < usable {
                        value = seen.value;
                    }
                    carry = join_carries(join_far_to_near(value, sub_lane, sub_size), carry);
                    look -= min(usable, look);
                    spins = 0u;
                }
                if found {
                    break;
                }
                spins += 1u;
                if spins > SPINS {
                    blocked = look - 1u;
                    break;
                }
            }
            if sub_lane == 0u {
                if blocked == DONE {
                    post_prefix(tile, carry, total);
                }
                wg_carry = carry;
                wg_blocked = blocked;
            }
        }
        let blocked = workgroupUniformLoad(&wg_blocked);
        if blocked == DONE {
            break;
        }
        fall_back(blocked, sub_lane, sub_size, sub_id, sub_count);
    }
    return wg_carry;
}

fn carry_of_lane(x: Carry, mask: u32) -> Carry {
#if COUNTED
    return Item(subgroupShuffleXor(x.value, mask), subgroupShuffleXor(x.head, mask));
#else
    return subgroupShuffleXor(x, mask);
#endif
}

// The total of a value a lane, where lane 0 comes last.
fn join_far_to_near(value: Carry, lane: u32, size: u32) -> Carry {
#if NATIVE_ADD
    return subgroupAdd(value);
#else
    var total = value;
    for (var mask = 1u; mask < size; mask *= 2u) {
        let other = carry_of_lane(total, mask);
        if (lane & mask) == 0u {
            total = join_carries(other, total);
        } else {
            total = join_carries(total, other);
        }
    }
    return total;
#endif
}
#else
const WINDOW: u32 = min(32u, WORKGROUP_SIZE);
var<workgroup> wg_seen: array<Seen, WINDOW>;
var<workgroup> wg_next: vec2<u32>;

fn look_back(local: u32, total: Item, lane: u32) -> Carry {
    let tile = params.first_tile + local;
    if lane == 0u && posts_are_made(tile) {
        post(tile, total_state(tile, total), carry_of(total));
    }
    if tile == 0u {
        return no_carry();
    }
    // The tiles `look .. tile` are in lane 0's `carry`.
    var look = tile;
    var carry = no_carry();
    var next = vec2<u32>(0u);
    loop {
        if lane < WINDOW {
            // Lane 0 sees the nearest tile; before all tiles lies nothing.
            var seen = Seen(PREFIX, no_carry());
            for (var spins = 0u; lane < look && spins <= SPINS; spins++) {
                seen = peek(look - 1u - lane);
                if seen.state != NOT_READY {
                    break;
                }
            }
            wg_seen[lane] = seen;
        }
        workgroupBarrier();
        if lane == 0u {
            var state = TOTAL;
            var usable = 0u;
            while state == TOTAL && usable < WINDOW {
                let seen = wg_seen[usable];
                state = seen.state;
                if state != NOT_READY {
                    carry = join_carries(seen.value, carry);
                    usable += 1u;
                }
            }
            if state == PREFIX {
                post_prefix(tile, carry, total);
            }
            wg_carry = carry;
            wg_next = vec2<u32>(look - min(usable, look), state);
        }
        next = workgroupUniformLoad(&wg_next);
        look = next.x;
        if next.y == PREFIX {
            break;
        }
        if next.y == NOT_READY {
            fall_back(look - 1u, lane);
        }
    }
    return wg_carry;
}
#endif
