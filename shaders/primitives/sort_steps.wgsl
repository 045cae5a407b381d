// The steps of a thread over its keys, unrolled: keys are named variables, which drivers hold in registers.
// `sort_steps_loop` has the same steps in loops.
#for i in ITEMS_PER_THREAD
var<private> key_{i}: Key;
#end
// The rank of each key, then its place in the tile.
#for i in ITEMS_PER_THREAD
var<private> place_{i}: u32;
#end

// Without a condition for each key, all loads are in flight together.
fn load_keys(at: u32, end: u32, full: bool) {
#for i in ITEMS_PER_THREAD
    key_{i} = load_key(at + {i}u * row_size, end);
#end
    if !full {
#for i in ITEMS_PER_THREAD
        key_{i} = pad_key(key_{i}, at + {i}u * row_size, end);
#end
    }
}

fn rank_keys() {
#for i in ITEMS_PER_THREAD
    place_{i} = rank(digit_of(key_{i}));
#end
}

fn find_places() {
#for i in ITEMS_PER_THREAD
    place_{i} = place_of(key_{i}, place_{i});
#end
}

fn place_keys() {
#for i in ITEMS_PER_THREAD
    place_key(key_{i}, place_{i});
#end
}

#if VALUES
#for i in ITEMS_PER_THREAD
var<private> value_{i}: u32;
#end
// Where in the output the keys went that this thread wrote: their values go there too.
#for i in ITEMS_PER_THREAD
var<private> goal_{i}: u32;
#end

fn emit_keys(keys: u32) {
#for i in ITEMS_PER_THREAD
    goal_{i} = emit_key({i}u * WORKGROUP_SIZE + invocation, keys);
#end
}

fn load_values(at: u32, end: u32) {
#for i in ITEMS_PER_THREAD
    value_{i} = load_value(at + {i}u * row_size, end);
#end
}

fn place_values() {
#for i in ITEMS_PER_THREAD
    place_value(value_{i}, place_{i});
#end
}

fn emit_values(keys: u32) {
#for i in ITEMS_PER_THREAD
    emit_value({i}u * WORKGROUP_SIZE + invocation, keys, goal_{i});
#end
}
#else
fn emit_keys(keys: u32) {
#for i in ITEMS_PER_THREAD
    emit_key({i}u * WORKGROUP_SIZE + invocation, keys);
#end
}
#endif
