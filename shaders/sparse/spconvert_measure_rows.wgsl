// The longest row, the number of empty rows, and the sum of squared lengths. One thread takes a few rows; a workgroup
// adds its result to memory once.
#import sparse/spconvert_params
#import sparse/spconvert_measures

const ITEMS_PER_THREAD: u32 = 4u;

@group(0) @binding(2) var<storage, read> row_ptrs: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spconvert_measure_rows(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    clear_measures(lane);
    let begin = workgroup_index(group) * WORKGROUP_SIZE * ITEMS_PER_THREAD;
    var longest = 0u;
    var empty = 0u;
    // The sum of squares, low word first.
    var squares = vec2<u32>();
    for (var i = 0u; i < ITEMS_PER_THREAD; i++) {
        let row = begin + i * WORKGROUP_SIZE + lane;
        if row < params.count {
            let length = row_ptrs[row + 1u] - row_ptrs[row];
            longest = max(longest, length);
            empty += u32(length == 0u);
            // In halves: (a + 2^16 b)^2 = a^2 + 2^17 a b + 2^32 b^2, with carries.
            let low_half = length & 0xffffu;
            let high_half = length >> 16u;
            let across = low_half * high_half;
            let low = low_half * low_half + (across << 17u);
            squares.x += low;
            squares.y += high_half * high_half + (across >> 15u) + u32(low < (across << 17u)) + u32(squares.x < low);
        }
    }
    atomicMax(&wg_measures[LONGEST], longest);
    atomicAdd(&wg_measures[EMPTY], empty);
    let before = atomicAdd(&wg_measures[SQUARES], squares.x);
    atomicAdd(&wg_measures[SQUARES + 1u], squares.y + u32(before + squares.x < squares.x));
    workgroupBarrier();
    if lane == 0u {
        atomicMax(&measures[LONGEST], atomicLoad(&wg_measures[LONGEST]));
        atomicAdd(&measures[EMPTY], atomicLoad(&wg_measures[EMPTY]));
        let low = atomicLoad(&wg_measures[SQUARES]);
        let sum = atomicAdd(&measures[SQUARES], low);
        let high = atomicLoad(&wg_measures[SQUARES + 1u]) + u32(sum + low < low);
        atomicAdd(&measures[SQUARES + 1u], high);
    }
}
