// Ranks keys within a workgroup by ballots: a row is a subgroup, and eight ballots show each lane the lanes that hold
// its digit. Subgroups may have any size for which ROWS leaves room.
enable subgroups;

const ROWS: u32 = 8u;

var<workgroup> wg_sums: array<u32, ROWS>;

var<private> invocation: u32;
var<private> row: u32;
var<private> lane: u32;
var<private> rows: u32;
var<private> row_size: u32;

// Once for a workgroup. The index follows rows and lanes, whatever local_invocation_index does.
fn take_place(sub_id: u32, sub_lane: u32, sub_count: u32, sub_size: u32) {
    invocation = sub_id * sub_size + sub_lane;
    row = sub_id;
    lane = sub_lane;
    rows = sub_count;
    row_size = sub_size;
}

#if LARGE_SUBGROUPS
alias Lanes = vec4<u32>;

fn ballot(yes: bool) -> Lanes { return subgroupBallot(yes); }
fn count(lanes: Lanes) -> u32 {
    let bits = countOneBits(lanes);
    return bits.x + bits.y + bits.z + bits.w;
}
fn first(lanes: Lanes) -> u32 {
    let bits = firstTrailingBit(lanes) + vec4<u32>(0u, 32u, 64u, 96u);
    let upper = select(bits.w, bits.z, lanes.z != 0u);
    return select(select(upper, bits.y, lanes.y != 0u), bits.x, lanes.x != 0u);
}
fn earlier(lanes: Lanes) -> u32 {
    let bounds = vec4<u32>(0u, 32u, 64u, 96u);
    let partly = lanes & vec4<u32>((1u << (lane & 31u)) - 1u);
    let whole = select(vec4<u32>(), lanes, vec4<u32>(lane) >= bounds + 32u);
    return count(select(whole, partly, vec4<u32>(lane >> 5u) == bounds >> vec4<u32>(5u)));
}
#else
alias Lanes = u32;

fn ballot(yes: bool) -> Lanes { return subgroupBallot(yes).x; }
fn count(lanes: Lanes) -> u32 { return countOneBits(lanes); }
fn first(lanes: Lanes) -> u32 { return firstTrailingBit(lanes); }
fn earlier(lanes: Lanes) -> u32 { return countOneBits(lanes & ((1u << lane) - 1u)); }
#endif

// Those of `lanes` whose digit has the same bit number `i`.
fn alike(lanes: Lanes, digit: u32, i: u32) -> Lanes {
    let bit = (digit >> i) & 1u;
    return lanes & (ballot(bit == 1u) ^ Lanes(bit - 1u));
}

// How many keys with this digit the row has ranked before, counted in wg_words.
fn rank(digit: u32) -> u32 {
    var peers = ballot(true);
    peers = alike(peers, digit, 0u);
    peers = alike(peers, digit, 1u);
    peers = alike(peers, digit, 2u);
    peers = alike(peers, digit, 3u);
    peers = alike(peers, digit, 4u);
    peers = alike(peers, digit, 5u);
    peers = alike(peers, digit, 6u);
    peers = alike(peers, digit, 7u);
    let leader = first(peers);
    var before = 0u;
    if lane == leader { before = atomicAdd(&wg_words[row * RADIX + digit], count(peers)); }
    // The shuffle needs every leader's count, so the next call adds after this one.
    return subgroupShuffle(before, leader) + earlier(peers);
}

// The sum of `x` over all threads before this one, by row and lane.
fn sum_before(x: u32) -> u32 {
    let mine = subgroupExclusiveAdd(x);
    if lane == row_size - 1u { wg_sums[row] = mine + x; }
    workgroupBarrier();
    var rows_before = 0u;
    for (var i = lane; i < row; i += row_size) { rows_before += wg_sums[i]; }
    return subgroupAdd(rows_before) + mine;
}
