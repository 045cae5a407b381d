// Single pass: D. Merrill and M. Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back (2016).
// A tile posts its total, then its inclusive prefix; a tile that finds one before it not posted after SPINS
// looks totals that tile itself, so that no workgroup depends on another's progress (T. Smith, R. Levien,
// J. D. Owens, Decoupled Fallback, 2025). Only relaxed 32-bit atomics: a word is value and state at once.
// A state of several words is there once each of its words is, in any order. Each word is written once, by its own
// tile: a tile that totals another keeps the result to itself, so no reader sees words of two roundings.
// The importer has Item, Acc and their functions, POSTS_BINDING, and total_of_tile. COUNTED, a tile leaves a
// number of heads behind beside its value, in a word more, and there is one dispatch.
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
// Words of an Acc.
const ACC_WORDS: u32 = 1u;

// What a tile leaves behind.
#if COUNTED
alias Carry = Item;
fn carry_of(x: Item) -> Carry { return x; }
fn no_carry() -> Carry { return nothing(); }
fn join_carries(a: Carry, b: Carry) -> Carry { return join(a, b); }
#else
alias Carry = Acc;
fn carry_of(x: Item) -> Carry { return value_of(x); }
fn no_carry() -> Carry { return op_identity(); }
fn join_carries(a: Carry, b: Carry) -> Carry { return op_combine(a, b); }
#endif

struct Seen { state: u32, value: Carry }

// A ticket; for each tile its prefix; for each its total; the same for each further word of an Acc; COUNTED, as many
// words for the heads of both; else for each dispatch what lies before it. 0 is not ready.
@group(0) @binding(POSTS_BINDING) var<storage, read_write> posts: array<atomic<u32>>;

// Many workgroups look at the same few tiles at the same time. Neighbouring tiles are therefore far apart in
// memory: one part of the cache serves a line, and would serve all of them.
const SPREAD: u32 = 64u;

fn rows() -> u32 { return max(16u, (params.all_tiles + SPREAD - 1u) / SPREAD); }
fn prefix_place(tile: u32) -> u32 { return 1u + (tile % SPREAD) * rows() + tile / SPREAD; }
fn total_place(tile: u32) -> u32 { return SPREAD * rows() + prefix_place(tile); }

#if TICKET
var<workgroup> wg_ticket: u32;

// The tile of this workgroup, in the order in which workgroups begin.
fn next_tile(index: u32) -> u32 {
    if index == 0u { wg_ticket = atomicAdd(&posts[0], 1u); }
    return workgroupUniformLoad(&wg_ticket) - params.first_tile;
}
#endif

// Where word `k` lies of the value at `at`. COUNTED, one more than the number of heads follows the last.
fn word_place(at: u32, k: u32) -> u32 { return at + 2u * SPREAD * rows() * k; }

#if ACC_WORDS == 1
alias Posted = u32;
fn posted_word(x: Acc, k: u32) -> u32 { return bitcast<u32>(x); }
#else
alias Posted = Acc;
fn posted_word(x: Acc, k: u32) -> u32 { return x[k]; }
#endif

fn peek_word(at: u32, state: u32) -> Seen {
    var ready = true;
#for k in ACC_WORDS
    let word_{k} = atomicLoad(&posts[word_place(at, {k}u)]);
    ready = ready & (word_{k} != 0u);
#end
    let value = bitcast<Acc>(Posted(
#for k in ACC_WORDS
        word_{k} ^ SPARE,
#end
    ));
#if COUNTED
    let heads = atomicLoad(&posts[word_place(at, ACC_WORDS)]);
    return Seen(select(NOT_READY, state, ready & (heads != 0u)), Item(value, heads - 1u));
#else
    return Seen(select(NOT_READY, state, ready), value);
#endif
}

// What tile `local` of this dispatch has posted.
fn peek(local: u32) -> Seen {
    let tile = params.first_tile + local;
    // Both at a time: to wait for one and then the other takes twice as long.
    var seen = peek_word(prefix_place(tile), PREFIX);
    let total = peek_word(total_place(tile), TOTAL);
    if seen.state != PREFIX { seen = total; }
    return seen;
}

fn post(local: u32, seen: Seen) {
    let tile = params.first_tile + local;
    let at = select(total_place(tile), prefix_place(tile), seen.state == PREFIX);
#if COUNTED
    let value = seen.value.value;
    atomicStore(&posts[word_place(at, ACC_WORDS)], seen.value.head + 1u);
#else
    let value = seen.value;
#endif
#for k in ACC_WORDS
    atomicStore(&posts[word_place(at, {k}u)], posted_word(value, {k}u) ^ SPARE);
#end
}

#if COUNTED
fn before_all() -> Carry { return no_carry(); }
fn hand_over(value: Carry) {}
#else
fn handed_place(piece: u32, k: u32) -> u32 { return word_place(1u, ACC_WORDS) + ACC_WORDS * piece + k; }

// What lies before all tiles of this dispatch: what the one before it handed over.
fn before_all() -> Carry {
    if params.piece == 0u { return op_identity(); }
    return bitcast<Acc>(Posted(
#for k in ACC_WORDS
        atomicLoad(&posts[handed_place(params.piece - 1u, {k}u)]),
#end
    ));
}

fn hand_over(value: Carry) {
#for k in ACC_WORDS
    atomicStore(&posts[handed_place(params.piece, {k}u)], posted_word(value, {k}u));
#end
}
#endif

// What is known of a tile by its total alone. One that holds a head leaves the same value behind whatever lies before
// it.
fn known(local: u32, total: Item) -> Seen {
#if !COUNTED
    if has_head(total) { return Seen(PREFIX, carry_of(total)); }
#endif
    if local == 0u { return Seen(PREFIX, join_carries(before_all(), carry_of(total))); }
    return Seen(TOTAL, carry_of(total));
}

// Whether the tile posts at all: for tests, one in LEAVE_OUT does not, as if its workgroup had been stopped.
#if LEAVING_OUT
const LEAVE_OUT: u32 = 2u;
fn posts_are_made(local: u32) -> bool { return (local + 1u) % LEAVE_OUT != 0u; }
#else
fn posts_are_made(local: u32) -> bool { return true; }
#endif

fn post_total(local: u32, total: Item) {
    if posts_are_made(local) { post(local, known(local, total)); }
}

fn post_prefix(local: u32, carry: Carry, total: Item) {
    var seen = known(local, total);
    if seen.state == TOTAL {
        seen = Seen(PREFIX, join_carries(carry, seen.value));
        if posts_are_made(local) { post(local, seen); }
    }
    if local + 1u == params.tiles { hand_over(seen.value); }
}

var<workgroup> wg_carry: Carry;

// What lies before tile `local` of this dispatch, whose own total is `total`.
#if SUBGROUPS
var<workgroup> wg_blocked: u32;

fn look_back(local: u32, total: Item, sub_lane: u32, sub_size: u32, sub_id: u32, sub_count: u32) -> Carry {
    if sub_id == 0u && sub_lane == 0u { post_total(local, total); }
    // Of the first subgroup: the tiles `look .. local` are in `carry`; nothing else is before them, if `ended`.
    var look = local;
    var carry = no_carry();
    var ended = false;
    loop {
        if sub_id == 0u {
            var spins = 0u;
            while !ended && spins <= SPINS {
                // Lane 0 sees the nearest tile.
                var seen = Seen(PREFIX, no_carry());
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
                    var value = no_carry();
                    if sub_lane < usable { value = seen.value; }
                    carry = join_carries(join_far_to_near(value, sub_lane, sub_size), carry);
                    look -= min(usable, look);
                    spins = 0u;
                }
            }
            if sub_lane == 0u {
                if ended { post_prefix(local, carry, total); }
                wg_carry = carry;
                wg_blocked = select(look, DONE, ended);
            }
        }
        let blocked = workgroupUniformLoad(&wg_blocked);
        if blocked == DONE { break; }
        let other = known(blocked - 1u, total_of_tile(blocked - 1u, sub_lane, sub_size, sub_id, sub_count));
        if sub_id == 0u {
#if ACC_WORDS == 1
            if sub_lane == 0u { post(blocked - 1u, other); }
#endif
            carry = join_carries(other.value, carry);
            ended = other.state == PREFIX;
            look = blocked - 1u;
        }
    }
    return wg_carry;
}

fn carry_across(x: Carry, mask: u32) -> Carry {
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
        let other = carry_across(total, mask);
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
// How far back the workgroup has looked, and what it found there.
var<workgroup> wg_next: vec2<u32>;

fn look_back(local: u32, total: Item, lane: u32) -> Carry {
    if lane == 0u { post_total(local, total); }
    // The tiles `look .. local` are in lane 0's `carry`; nothing else is before them, if `ended`.
    var look = local;
    var carry = no_carry();
    var ended = false;
    loop {
        if lane < WINDOW {
            // Lane 0 sees the nearest tile.
            var seen = Seen(PREFIX, no_carry());
            for (var spins = 0u; lane < look && spins <= SPINS; spins++) {
                seen = peek(look - 1u - lane);
                if seen.state != NOT_READY { break; }
            }
            if lane == look { seen.value = before_all(); }
            wg_seen[lane] = seen;
        }
        workgroupBarrier();
        if lane == 0u {
            var state = select(TOTAL, PREFIX, ended);
            for (var i = 0u; i < WINDOW && state == TOTAL; i++) {
                let seen = wg_seen[i];
                state = seen.state;
                if state != NOT_READY {
                    carry = join_carries(seen.value, carry);
                    look -= min(1u, look);
                }
            }
            if state == PREFIX { post_prefix(local, carry, total); }
            wg_carry = carry;
            wg_next = vec2<u32>(look, state);
        }
        let next = workgroupUniformLoad(&wg_next);
        look = next.x;
        if next.y == PREFIX { break; }
        if next.y == NOT_READY {
            look -= 1u;
            let other = known(look, total_of_tile(look, lane));
            if lane == 0u {
#if ACC_WORDS == 1
                post(look, other);
#endif
                carry = join_carries(other.value, carry);
                ended = other.state == PREFIX;
            }
        }
    }
    return wg_carry;
}
#endif
