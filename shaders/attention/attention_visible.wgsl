// The keys that a query sees, and their rows in k and v.
#import attention/attention_params

#if LENGTHS
const LENGTHS_BINDING: u32 = 1u;
@group(0) @binding(LENGTHS_BINDING) var<storage, read> lengths: array<u32>;
#endif
#if PAGED
const TABLE_BINDING: u32 = 1u;
const PAGE: u32 = 16u;
@group(0) @binding(TABLE_BINDING) var<storage, read> table: array<u32>;
#endif

// Marks a row in a page that does not exist.
const NO_ROW: u32 = 0xffffffffu;

// Returns the number of keys of a sequence.
fn length_of(sequence: u32) -> u32 {
#if LENGTHS
    return min(lengths[sequence], params.keys);
#else
    return params.keys;
#endif
}

// Returns the range of keys that a query sees: the first, and one past the last.
fn visible_to(query: u32, len: u32) -> vec2<u32> {
    let place = i32(len) + i32(query) - i32(params.queries);
    var first = 0;
    var end = i32(len);
#if CAUSAL
    end = max(place + 1, 0);
#else
#if WINDOWED
    end = clamp(place + i32(params.window), 0, end);
#endif
#endif
#if WINDOWED
    first = max(place + 1 - i32(params.window), 0);
#endif
    return vec2(u32(first), u32(max(end, first)));
}

// Returns the row of k and v that holds a key.
fn row_of(pair: u32, key: u32) -> u32 {
#if PAGED
    let page = table[pair / params.kv_heads * params.pages_each + key / PAGE];
    let row = (page * params.kv_heads + pair % params.kv_heads) * PAGE + key % PAGE;
    return select(row, NO_ROW, page >= params.pages);
#else
    return pair * params.keys + key;
#endif
}

// Finds the queries of tile `index` of all heads, and the keys that they see.
#block tile_of_queries(rows)
    // The last tiles see the most keys, so they run first.
    let tile = params.parts - 1u - index % params.parts;
    let group = params.heads / params.kv_heads;
    let head = params.first_pair * group + index / params.parts;
    let pair = head / group;
    let len = length_of(pair / params.kv_heads);
    let first_query = tile * {rows};
    let last_query = min(first_query + {rows}, params.queries) - 1u;
    let visible_to_first = visible_to(first_query, len);
    let visible_to_last = visible_to(last_query, len);
    let end_key = visible_to_last.y;
#end
