// The steps of `sort_steps` in loops, for processors: compilers cannot unroll them, and compile them quickly.
var<private> key_list: array<Key, ITEMS_PER_THREAD>;
var<private> place_list: array<u32, ITEMS_PER_THREAD>;

fn load_keys(at: u32, end: u32, full: bool) {
    for (var i = 0u; i < params.items; i++) { key_list[i] = load_key(at + i * row_size, end); }
    if !full {
        for (var i = 0u; i < params.items; i++) { key_list[i] = pad_key(key_list[i], at + i * row_size, end); }
    }
}

fn rank_keys() {
    for (var i = 0u; i < params.items; i++) { place_list[i] = rank(digit_of(key_list[i])); }
}

fn find_places() {
    for (var i = 0u; i < params.items; i++) { place_list[i] = place_of(key_list[i], place_list[i]); }
}

fn place_keys() {
    for (var i = 0u; i < params.items; i++) { place_key(key_list[i], place_list[i]); }
}

#if VALUES
var<private> value_list: array<u32, ITEMS_PER_THREAD>;
var<private> goal_list: array<u32, ITEMS_PER_THREAD>;

fn emit_keys(keys: u32) {
    for (var i = 0u; i < params.items; i++) { goal_list[i] = emit_key(i * WORKGROUP_SIZE + invocation, keys); }
}

fn load_values(at: u32, end: u32) {
    for (var i = 0u; i < params.items; i++) { value_list[i] = load_value(at + i * row_size, end); }
}

fn place_values() {
    for (var i = 0u; i < params.items; i++) { place_value(value_list[i], place_list[i]); }
}

fn emit_values(keys: u32) {
    for (var i = 0u; i < params.items; i++) { emit_value(i * WORKGROUP_SIZE + invocation, keys, goal_list[i]); }
}
#else
fn emit_keys(keys: u32) {
    for (var i = 0u; i < params.items; i++) { emit_key(i * WORKGROUP_SIZE + invocation, keys); }
}
#endif
