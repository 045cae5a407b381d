// Loads a tile of up to WORKGROUP_SIZE * ITEMS_PER_THREAD neighbouring elements, blocked: lane l gets elements
// first + l * ITEMS_PER_THREAD and those behind it. Neighbouring lanes read neighbouring elements.
//
//     fn load_tile(first: u32, end: u32, rest: T, lane: u32) -> array<T, ITEMS_PER_THREAD>
//
// Elements from `end` on are not read; `rest` stands for them.
//
// You declare  WORKGROUP_SIZE, any size; ITEMS_PER_THREAD; `alias T`; `fn load_element(at: u32) -> T`.
// `lane`       is local_invocation_index; `first` and `end` are uniform.
// Costs        the tile in workgroup memory (workgroup/exchange, shared with store_tile), two barriers.
// Call it      in uniform control flow, as often as you like.
#import workgroup/exchange

fn load_tile(first: u32, end: u32, rest: T, lane: u32) -> array<T, ITEMS_PER_THREAD> {
    var striped: array<T, ITEMS_PER_THREAD>;
    for (var i = 0u; i < ITEMS_PER_THREAD; i++) {
        let at = first + i * WORKGROUP_SIZE + lane;
        striped[i] = rest;
        if at < end { striped[i] = load_element(at); }
    }
    return striped_to_blocked(striped, lane);
}
