// Random numbers of one kind: a thread makes four from four consecutive words of a Philox stream, which lie in one
// block of the generator, or with SHIFTED in two. VECTORS stores the four at once; without it the last may be missing.
#import op/philox
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    seed: vec2<u32>,
    stream: vec2<u32>,
    first: vec2<u32>, // block of the first number: low word, high word
    n: u32,
    shift: u32, // words of that block before the first number
    low: u32, // smallest integer
    range: u32, // number of integers, 0 for 2^32; or the length of the table
    threshold: u32, // low words of products below it are drawn again; or the words that give 1
    base: f32,
    scale: f32,
    pad: u32, // to a multiple of 8 bytes
}
@group(0) @binding(0) var<uniform> params: Params;
#if VECTORS
@group(0) @binding(1) var<storage, read_write> output: array<vec4<u32>>;
#else
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
#endif
#if POISSON
// Entry k: 2^32 times the probability of at most low + k, rounded down.
@group(0) @binding(2) var<storage, read> table: array<u32>;

// How many entries are at most x.
fn at_most(x: u32) -> u32 {
    var begin = 0u;
    var end = params.range;
    while begin < end {
        let middle = (begin + end) / 2u;
        if table[middle] <= x { begin = middle + 1u; } else { end = middle; }
    }
    return begin;
}
#endif

fn counter(i: u32) -> vec4<u32> {
    let low = params.first.x + i;
    return vec4<u32>(low, params.first.y + u32(low < i), params.stream);
}

fn words(a: vec4<u32>, b: vec4<u32>) -> vec4<u32> {
#if SHIFTED
    if params.shift == 1u { return vec4<u32>(a.yzw, b.x); }
    if params.shift == 2u { return vec4<u32>(a.zw, b.xy); }
    return vec4<u32>(a.w, b.xyz);
#else
    return a;
#endif
}

#if INTEGERS
fn is_biased(x: vec4<u32>) -> vec4<bool> {
    let low = vec4<u32>(
#for k in x, y, z, w
        wide_product(x.{k}, params.range).x,
#end
    );
    return low < vec4<u32>(params.threshold);
}
#endif

// The numbers made from four words, as bits.
fn numbers(x: vec4<u32>) -> vec4<u32> {
#if NORMAL
    let z = vec4<f32>(random_normal(x.x, x.y), random_normal(x.z, x.w));
#if LOGARITHMS
    return bitcast<vec4<u32>>(exp(params.base + params.scale * z));
#else
    return bitcast<vec4<u32>>(params.base + params.scale * z);
#endif
#else
    return vec4<u32>(
#for k in x, y, z, w
#if UNIFORM
        bitcast<u32>(random_uniform(x.{k})),
#endif
#if BETWEEN
        bitcast<u32>(params.base + params.scale * random_uniform(x.{k})),
#endif
#if EXPONENTIAL
        bitcast<u32>(params.scale * random_exponential(x.{k})),
#endif
#if BERNOULLI
        u32(x.{k} < params.threshold),
#endif
#if INTEGERS
        params.low + select(wide_product(x.{k}, params.range).y, x.{k}, params.range == 0u),
#endif
#if POISSON
        params.low + at_most(x.{k}),
#endif
#if BITS
        x.{k},
#endif
#end
    );
#endif
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn random(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if 4u * i >= params.n { return; }
    var a = philox(counter(i), params.seed);
    var b = a;
#if SHIFTED
    b = philox(counter(i + 1u), params.seed);
#endif
    var x = words(a, b);
#if INTEGERS
    // Rejection as D. Lemire has it (2019). Another draw enciphers the block again, so that numbers stay independent of
    // each other. Half of the words are accepted at the least.
    var biased = is_biased(x);
    for (var draw = 0u; draw < 64u && any(biased); draw++) {
        a = philox(a, params.seed);
        b = philox(b, params.seed);
        x = select(x, words(a, b), biased);
        biased = is_biased(x);
    }
#endif
    let result = numbers(x);
#if VECTORS
    output[i] = result;
#else
    for (var k = 0u; k < min(4u, params.n - 4u * i); k++) { output[4u * i + k] = result[k]; }
#endif
}
