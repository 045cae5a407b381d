// Stores a blocked tile: what load_tile loads. Neighbouring lanes write neighbouring elements.
//
//     fn store_tile(first: u32, end: u32, items: array<T, ITEMS_PER_THREAD>, lane: u32)
//
// Nothing is written from `end` on.
//
// You declare  WORKGROUP_SIZE, any size; ITEMS_PER_THREAD; `alias T`; `fn store_element(at: u32, x: T)`.
// `lane`       is local_invocation_index; `first` and `end` are uniform.
// Costs        the tile in workgroup memory (workgroup/exchange, shared with load_tile), two barriers.
// Call it      in uniform control flow, as often as you like.
#import workgroup/exchange

fn store_tile(first: u32, end: u32, items: array<T, ITEMS_PER_THREAD>, lane: u32) {
    var striped = blocked_to_striped(items, lane);
    for (var i = 0u; i < ITEMS_PER_THREAD; i++) {
        let at = first + i * WORKGROUP_SIZE + lane;
        if at < end { store_element(at, striped[i]); }
    }
}
