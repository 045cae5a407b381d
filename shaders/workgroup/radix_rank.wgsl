// Ranks one digit of each thread: the lane's place when lanes are sorted by digit. Stable: lanes of equal digits keep
// their order. This is the step of a radix sort.
//
//     fn workgroup_radix_rank(digit: u32, lane: u32) -> u32
//
// You declare  WORKGROUP_SIZE, any size up to 65535.
// `digit`      is below 16. `lane` is local_invocation_index.
// Costs        32 bytes of workgroup memory for each lane, 2 log2(WORKGROUP_SIZE) + 2 barriers.
// Call it      in uniform control flow, as often as you like.

// Counts of 16 digits, 16 bits each: those of digit d are in word d / 2.
struct DigitCounts { low: vec4<u32>, high: vec4<u32> }

var<workgroup> wg_digits: array<DigitCounts, WORKGROUP_SIZE>;

fn count_of(counts: DigitCounts, digit: u32) -> u32 {
    let four = select(counts.low, counts.high, digit >= 8u);
    return four[digit / 2u % 4u] >> (digit % 2u * 16u) & 0xffffu;
}

fn workgroup_radix_rank(digit: u32, lane: u32) -> u32 {
    let one = 1u << (digit % 2u * 16u);
    let words = vec4(digit / 2u) - vec4(0u, 1u, 2u, 3u);
    let low = select(vec4(0u), vec4(one), words == vec4(0u));
    let high = select(vec4(0u), vec4(one), words == vec4(4u));
    var mine = DigitCounts(low, high);
    wg_digits[lane] = mine;
    for (var stride = 1u; stride < WORKGROUP_SIZE; stride *= 2u) {
        workgroupBarrier();
        if lane >= stride {
            let before = wg_digits[lane - stride];
            mine = DigitCounts(before.low + mine.low, before.high + mine.high);
        }
        workgroupBarrier();
        wg_digits[lane] = mine;
    }
    workgroupBarrier();
    let all = wg_digits[WORKGROUP_SIZE - 1u];
    // The next call may write only when all have read.
    workgroupBarrier();
    // Lanes of this digit before this one, then those of smaller digits.
    var rank = count_of(mine, digit) - 1u;
    for (var smaller = 0u; smaller < digit; smaller++) { rank += count_of(all, smaller); }
    return rank;
}
