// The parameters and operands of the kernels of attention's backward pass. A pair is a (sequence, kv head). A dispatch
// computes some pairs; it numbers their rows from 0. Each binding begins base_* elements before the first of them.
//
// QUERIES: a workgroup owns queries and walks over the keys that they see; it computes dq. Otherwise it owns keys and
// walks over the queries that see them; it computes dk and dv. STATISTICS: it computes the statistics of its queries,
// too, or with STATISTICS_ALONE only those. STORED: it stores slopes of keys, or with QUERIES reads them.
#import workgroup/index
#import element/f32 as element

// Elements of a row of q and k.
const HEAD: u32 = 64u;
// Own keys of a workgroup that stores slopes.
const KEY_TILE: u32 = 128u;

struct Params {
    queries: u32,
    keys: u32,
    // Heads that share keys.
    group: u32,
    window: u32,
    // Tiles of own rows of a head.
    tiles: u32,
    workgroups: u32,
    // Elements before the first row of a query, and of a key.
    base_q: u32,
    base_k: u32,
    scale: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
#if QUERIES && STORED
@group(0) @binding(1) var<storage, read> k: array<Words>;
@group(0) @binding(2) var<storage, read> slopes: array<Words>;
@group(0) @binding(3) var<storage, read_write> dq: array<Words>;
#else
@group(0) @binding(1) var<storage, read> q: array<Words>;
@group(0) @binding(2) var<storage, read> k: array<Words>;
@group(0) @binding(3) var<storage, read> v: array<Words>;
@group(0) @binding(4) var<storage, read> dy: array<Words>;
// For each query: the logarithm of the sum of its exponentials, and the mean of dy v^T by its weights.
#if STATISTICS
@group(0) @binding(5) var<storage, read_write> statistics: array<vec2<f32>>;
#else
@group(0) @binding(5) var<storage, read> statistics: array<vec2<f32>>;
#endif
#if QUERIES
#if !STATISTICS_ALONE
@group(0) @binding(6) var<storage, read_write> dq: array<Words>;
#endif
#else
@group(0) @binding(6) var<storage, read_write> dk: array<Words>;
@group(0) @binding(7) var<storage, read_write> dv: array<Words>;
#if STORED
// Blocks of 16 queries of a head: a row of slopes for each key, with keys up to a multiple of KEY_TILE.
@group(0) @binding(8) var<storage, read_write> slopes: array<Words>;
#endif
#endif
#endif

// Returns the keys that a query sees, or the queries that see a key: the first, and one past the last.
fn visible_to(own: u32) -> vec2<u32> {
    let place = i32(own);
#if QUERIES
    let shift = i32(params.keys) - i32(params.queries);
    let len = i32(params.keys);
#else
    let shift = i32(params.queries) - i32(params.keys);
    let len = i32(params.queries);
#endif
    var first = 0;
    var end = len;
#if WINDOWED
    first = max(place + shift + 1 - i32(params.window), 0);
    end = min(place + shift + i32(params.window), len);
#endif
#if CAUSAL
#if QUERIES
    end = min(place + shift + 1, len);
#else
    first = max(place + shift, 0);
#endif
#endif
    return vec2(u32(first), u32(max(end, first)));
}

// The tile of OWN rows of workgroup `index`, and what its first and last rows see.
#block own_tile()
    // If causal, the last queries see the most keys, and the first keys are seen by the most queries: they run first.
#if QUERIES
    let tile = params.tiles - 1u - index % params.tiles;
    let len = params.queries;
#else
    let tile = index % params.tiles;
    let len = params.keys;
#endif
    // A head of queries, or of keys.
    let own_head = index / params.tiles;
    let first = tile * OWN;
    let last = min(first + OWN, len) - 1u;
    let first_own = own_head * len + first;
    let last_own = own_head * len + last;
    let visible_to_first = visible_to(first);
    let visible_to_last = visible_to(last);
#end
