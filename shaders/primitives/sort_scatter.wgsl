// Last step of a pass of the variant `counting`: one workgroup takes its block tile by tile, ranks the keys of a tile
// by digit, in order, and moves them to the positions that the counts of all blocks give. With RUNS one thread does so,
// key by key.
#import primitives/sort_block
#if RUNS
#import primitives/sort_runs
#else
#import primitives/sort_tile
#endif

@group(0) @binding(1) var<storage, read> keys_in: array<Key>;
@group(0) @binding(2) var<storage, read_write> keys_out: array<Key>;
@group(0) @binding(3) var<storage, read> counts: array<u32>;
@group(0) @binding(4) var<storage, read> totals: array<u32>;
#if VALUES
#if POSITIONS
@group(0) @binding(5) var<storage, read_write> values_out: array<u32>;

#if COUNTED
@group(0) @binding(6) var<storage, read> count: array<u32>;
#endif

fn position_of(at: u32) -> u32 { return params.first + at; }
#else
@group(0) @binding(5) var<storage, read> values_in: array<u32>;
@group(0) @binding(6) var<storage, read_write> values_out: array<u32>;
#if COUNTED
@group(0) @binding(7) var<storage, read> count: array<u32>;
#endif
#endif
#else
#if COUNTED
@group(0) @binding(5) var<storage, read> count: array<u32>;
#endif
#endif

#if !RUNS
// Where the next key of each digit of this block goes.
var<workgroup> wg_next: array<u32, RADIX>;

fn claim_digit(digit: u32, start: u32, keys: u32) {
    let next = wg_next[digit];
    wg_bases[digit] = next - start;
    wg_next[digit] = next + keys;
}
#endif

// An output above one binding is written window by window.
fn store_key(place: u32, key: Key) {
    let at = place - params.window;
    if at < params.window_len { keys_out[at] = key; }
}

#if VALUES
fn store_value(place: u32, value: u32) {
    let at = place - params.window;
    if at < params.window_len { values_out[at] = value; }
}
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn sort_scatter(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) index: u32) {
#if RUNS
#put block_of_thread(group, index)
    // The counters are the places of the next keys.
    var before = 0u;
    for (var digit = 0u; digit < RADIX; digit++) {
        wg_counters[counter(digit, index)] = before + counts[count_of(digit, block)];
        before += totals[digit];
    }
    for (var at = range.x; at < range.y; at++) {
        let key = given_key(keys_in[at]);
        let next = counter(digit_at(key, shift, mask), index);
        let place = wg_counters[next];
        wg_counters[next] = place + 1u;
        store_key(place, key);
#if VALUES
#if POSITIONS
        store_value(place, position_of(at));
#else
        store_value(place, values_in[at]);
#endif
#endif
    }
#else
    let block = workgroup_index(group);
    if block >= params.blocks { return; }
    take_place(index);
    let first_digit = index * DIGITS_PER_THREAD;
    let end_digit = min(first_digit + DIGITS_PER_THREAD, RADIX);
    var sum = 0u;
    for (var digit = first_digit; digit < end_digit; digit++) { sum += totals[digit]; }
    var place = sum_before(sum);
    for (var digit = first_digit; digit < end_digit; digit++) {
        wg_next[digit] = place + counts[digit * params.all_blocks + params.first_block + block];
        place += totals[digit];
    }
    let range = block_range(block);
    for (var first = range.x; first < range.y; first += TILE) {
        let keys = min(TILE, range.y - first);
        clear_counts();
        load_keys(first + first_key(), range.y, keys == TILE);
        workgroupBarrier();
        rank_keys();
        workgroupBarrier();
        split_digits();
        workgroupBarrier();
        find_places();
        workgroupBarrier();
        place_keys();
        workgroupBarrier();
        emit_keys(keys);
#if VALUES
        load_values(first + first_key(), range.y);
        workgroupBarrier();
        place_values();
        workgroupBarrier();
        emit_values(keys);
#endif
        workgroupBarrier();
    }
#endif
}
