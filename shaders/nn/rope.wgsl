// Rotates pairs of elements of each row by the angles of its position (Su et al., "RoFormer", 2021). Of the first
// `rotary` elements, j and j + rotary / 2 form a pair, or with INTERLEAVED 2 j and 2 j + 1; the rest is copied.
// A thread computes four elements. VECTORS: they and their partners are aligned vec4s of one row.
#import workgroup/index
#import element/fours_in
#import element/fours_out

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    len: u32, // elements in the bindings
    first: u32, // index of the first element
    size: u32, // elements of a row
    rotary: u32,
    heads: u32,
    tokens: u32,
    table: u32, // rows of the tables
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(2) var<storage, read> cos_table: array<f32>;
@group(0) @binding(3) var<storage, read> sin_table: array<f32>;
#if POSITIONS
@group(0) @binding(4) var<storage, read> positions: array<u32>;
#endif

// Returns the index of the angles of a row. Tables without positions have a row for each token of one sequence, or of
// all.
fn angles_of(row: u32) -> u32 {
    let sequence = row / (params.heads * params.tokens);
#if TOKENS_FIRST
    let token = row / params.heads % params.tokens;
#else
    let token = row % params.tokens;
#endif
    let number = sequence * params.tokens + token;
#if POSITIONS
    return min(positions[number], params.table - 1u) * (params.rotary / 2u);
#else
    return number % params.table * (params.rotary / 2u);
#endif
}

#if VECTORS
fn rotated(at: u32) -> vec4<f32> {
    let x = load4(at);
    let place = (params.first + at) % params.size;
    if place >= params.rotary {
        return x;
    }
    let angles = angles_of((params.first + at) / params.size);
#if INTERLEAVED
    let j = angles + place / 2u;
    let c = vec2(cos_table[j], cos_table[j + 1u]).xxyy;
    let s = vec2(sin_table[j], sin_table[j + 1u]).xxyy;
    return c * x + s * vec4(-x.y, x.x, -x.w, x.z);
#else
    let half = params.rotary / 2u;
    let second = place >= half;
    let j = angles + select(place, place - half, second);
    let c = vec4(cos_table[j], cos_table[j + 1u], cos_table[j + 2u], cos_table[j + 3u]);
    let s = vec4(sin_table[j], sin_table[j + 1u], sin_table[j + 2u], sin_table[j + 3u]);
    let partner = load4(select(at + half, at - half, second));
    return c * x + s * select(-partner, partner, second);
#endif
}
#else
fn rotated_one(at: u32) -> f32 {
    let x = element(at);
    let place = (params.first + at) % params.size;
    if place >= params.rotary || at >= params.len {
        return x;
    }
    let angles = angles_of((params.first + at) / params.size);
#if INTERLEAVED
    let j = angles + place / 2u;
    let second = place % 2u == 1u;
    let apart = 1u;
#else
    let apart = params.rotary / 2u;
    let second = place >= apart;
    let j = angles + select(place, place - apart, second);
#endif
    let partner = element(select(at + apart, at - apart, second));
    return cos_table[j] * x + sin_table[j] * select(-partner, partner, second);
}

fn rotated(at: u32) -> vec4<f32> {
    return vec4(rotated_one(at), rotated_one(at + 1u), rotated_one(at + 2u), rotated_one(at + 3u));
}
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn rope(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = 4u * (workgroup_index(group) * WORKGROUP_SIZE + lane);
    if at >= params.len {
        return;
    }
    store4(at, rotated(at));
}
