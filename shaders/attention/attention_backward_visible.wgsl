// Returns the columns of a row of scores that its query sees, of `len` from key `params.first_key` on: the first, and
// one past the last. The importer has `params` with first_query, queries, keys, first_key and window.

fn visible_to(row: u32, len: u32) -> vec2<i32> {
    let place = i32(params.first_query + row) + i32(params.keys) - i32(params.queries);
    var first = 0;
    var end = i32(params.keys);
#if WINDOWED
    first = place + 1 - i32(params.window);
    end = min(place + i32(params.window), end);
#endif
#if CAUSAL
    end = min(place + 1, end);
#endif
    return clamp(vec2(first, end) - i32(params.first_key), vec2(0), vec2(i32(len)));
}
