// Shared by all histogram kernels: parameters, the input, and the bin of a value. Values are compared as keys, unsigned
// numbers in the order of the values, so the result does not depend on the rounding of a device.
// SHIFT: each bin is 2^k whole numbers wide. UNIFORM: other equal bins; a quotient in f32 names the bin, and near an
// edge the table decides. Neither: searches the table.
#import dispatch/extent
#import element/u32 as element
#if MAPPED
#import elementwise/map_functions as function
#endif

struct Params {
    n: u32,       // elements of the chunk
    bins: u32,
    least: u32,   // key of the lowest value that counts
    span: u32,    // keys from there to that of the highest
    bias: u32,    // distance from the first edge to the lowest value that counts
    shift: u32,   // log2 of a bin's width
    lo: f32,      // first edge
    scale: f32,   // bins in a distance of 1
    margin: f32,  // how near to an edge the quotient may err, in bins
    edges: u32,   // bins that a value can fall into
    stride: u32,  // first step of the search: the highest power of two below `edges`, or 0
    parts: u32,   // workgroups that share the chunk
    vectors: u32, // whole vec4 of the chunk
    before: u32,  // elements of earlier chunks
}
@group(0) @binding(0) var<uniform> params: Params;

#put extent(params.n, params.before)

// Whole vec4 of the elements there are.
#if LIMITED
fn vectors_there() -> u32 { return min(params.vectors, extent() / (4u * PACK)); }
#else
fn vectors_there() -> u32 { return params.vectors; }
#endif

@group(0) @binding(1) var<storage, read_write> counts: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> input: array<u32>;
#if !SHIFT
// Key of the lowest value of each bin.
@group(0) @binding(3) var<storage, read> edges: array<u32>;
#endif
#if VECTORS
// The input again, as vec4 words.
#if SHIFT
@group(0) @binding(3) var<storage, read> vectors: array<vec4<u32>>;
#else
@group(0) @binding(4) var<storage, read> vectors: array<vec4<u32>>;
#endif
#endif

const NOT_COUNTED: u32 = 4294967295u;

fn key_of(x: T) -> u32 {
#if FLOAT
    let bits = bitcast<u32>(x);
    return bits ^ (bitcast<u32>(bitcast<i32>(bits) >> 31u) | 0x80000000u);
#else
#if SIGNED
    return bitcast<u32>(x) ^ 0x80000000u;
#else
    return x;
#endif
#endif
}

// The bin of a value, or NOT_COUNTED; with MAPPED that of a function of it. A NaN's key lies beyond those of all
// numbers.
fn bin_of(element: T) -> u32 {
#if MAPPED
    let x = map(element);
#else
    let x = element;
#endif
    let key = key_of(x);
    let rank = key - params.least;
    if rank > params.span { return NOT_COUNTED; }
#if SHIFT
    return min((rank + params.bias) >> params.shift, params.bins - 1u);
#else
#if UNIFORM
#if FLOAT
    let position = max((x - params.lo) * params.scale, 0.0);
#else
    let position = f32(rank + params.bias) * params.scale;
#endif
    let near = min(u32(position), params.edges - 1u);
    let past = position - f32(near);
    if min(past, 1.0 - past) < params.margin {
        if near > 0u && key < edges[near] { return near - 1u; }
        if near + 1u < params.edges && key >= edges[near + 1u] { return near + 1u; }
    }
    return near;
#else
    var bin = 0u;
    for (var step = params.stride; step > 0u; step >>= 1u) {
        let probe = bin + step;
        if probe < params.edges && key >= edges[min(probe, params.edges - 1u)] { bin = probe; }
    }
    return bin;
#endif
#endif
}

fn element(at: u32) -> T { return decode(input[at / PACK], at % PACK); }
