// Moves the values of a tile between threads. A tile has ITEMS_PER_THREAD values for each of WORKGROUP_SIZE lanes.
//
//     fn blocked_to_striped(items: array<T, ITEMS_PER_THREAD>, lane: u32) -> array<T, ITEMS_PER_THREAD>
//     fn striped_to_blocked(items: array<T, ITEMS_PER_THREAD>, lane: u32) -> array<T, ITEMS_PER_THREAD>
//     fn scatter_to_blocked(items: array<T, ITEMS_PER_THREAD>, places: array<u32, ITEMS_PER_THREAD>, lane: u32)
//         -> array<T, ITEMS_PER_THREAD>
//
// Blocked: lane l holds values l * ITEMS_PER_THREAD, l * ITEMS_PER_THREAD + 1, ... of the tile. Striped: it holds
// values l, l + WORKGROUP_SIZE, ... Memory is read fastest striped, sums of neighbours are taken blocked.
// `scatter_to_blocked` puts each value at its place in the tile; the places are a permutation of the numbers below the
// size of the tile.
//
// You declare  WORKGROUP_SIZE, any size; ITEMS_PER_THREAD; `alias T`, any type.
// `lane`       is local_invocation_index.
// Costs        WORKGROUP_SIZE * ITEMS_PER_THREAD values of workgroup memory, two barriers a call.
// Call them    in uniform control flow, as often as you like.
var<workgroup> wg_exchange: array<T, WORKGROUP_SIZE * ITEMS_PER_THREAD>;

fn blocked_to_striped(items: array<T, ITEMS_PER_THREAD>, lane: u32) -> array<T, ITEMS_PER_THREAD> {
    var mine = items;
    for (var i = 0u; i < ITEMS_PER_THREAD; i++) { wg_exchange[lane * ITEMS_PER_THREAD + i] = mine[i]; }
    workgroupBarrier();
    for (var i = 0u; i < ITEMS_PER_THREAD; i++) { mine[i] = wg_exchange[i * WORKGROUP_SIZE + lane]; }
    workgroupBarrier();
    return mine;
}

fn striped_to_blocked(items: array<T, ITEMS_PER_THREAD>, lane: u32) -> array<T, ITEMS_PER_THREAD> {
    var places: array<u32, ITEMS_PER_THREAD>;
    for (var i = 0u; i < ITEMS_PER_THREAD; i++) { places[i] = i * WORKGROUP_SIZE + lane; }
    return scatter_to_blocked(items, places, lane);
}

fn scatter_to_blocked(
    items: array<T, ITEMS_PER_THREAD>, places: array<u32, ITEMS_PER_THREAD>, lane: u32,
) -> array<T, ITEMS_PER_THREAD> {
    var mine = items;
    var to = places;
    for (var i = 0u; i < ITEMS_PER_THREAD; i++) { wg_exchange[to[i]] = mine[i]; }
    workgroupBarrier();
    for (var i = 0u; i < ITEMS_PER_THREAD; i++) { mine[i] = wg_exchange[lane * ITEMS_PER_THREAD + i]; }
    workgroupBarrier();
    return mine;
}
