// Rows of new keys, or of values, to their places in a cache, quantised where the cache is: a factor for each row,
// then codes of its elements over it.
// LANES invocations take a row, four elements each; a workgroup of WORKGROUP_SIZE takes several.
#import attention/attention_seen
#import attention/q_f32 as queries
#import element/f32 as element
#if BYTES
#import workgroup/reduce_rows
#import quantize/int8
#import quantize/fp8
#endif

const WORKGROUP_SIZE: u32 = 64u;
// A power of two.
const LANES: u32 = 16u;
const CACHE_BINDING: u32 = 3u;

#if BYTES
// The largest code.
const LARGEST: f32 = 127.0;
const SCALES_BINDING: u32 = 4u;
@group(0) @binding(CACHE_BINDING) var<storage, read_write> cache: array<u32>;
@group(0) @binding(SCALES_BINDING) var<storage, read_write> scales: array<f32>;
#else
#if HALVES
@group(0) @binding(CACHE_BINDING) var<storage, read_write> cache: array<vec2<u32>>;
#else
@group(0) @binding(CACHE_BINDING) var<storage, read_write> cache: array<vec4<u32>>;
#endif
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn kv_append(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let index = workgroup_index(id) * (WORKGROUP_SIZE / LANES) + local / LANES;
    let row = params.first_row + min(index, params.rows - 1u);
    let lane = local % LANES;
    let pair = row / params.queries;
    // No sum, which a length that is none could bring beyond what is counted.
    let key = min(lengths[pair / params.kv_heads], params.keys) + row % params.queries;
    let live = index < params.rows && lane < FOURS && key < params.keys;
    let x = select(vec4<f32>(), query_four(row, min(lane, FOURS - 1u)), lane < FOURS);
#if BYTES
    let most = row_total(abs(x), true, 0u, local, 1u);
    let scale = most / LARGEST;
#endif
    if !live {
        return;
    }
    let to = row_of(pair, key);
    if to == NO_ROW {
        return;
    }
    let at = to * FOURS + lane - params.base_kv;
#if BYTES
    let codes = select(x / scale, vec4<f32>(), vec4(scale == 0.0));
#if FP8
    cache[at] = pack_fp8(codes);
#else
    cache[at] = pack_int8(codes);
#endif
    if lane == 0u {
        scales[params.kv_rows + to] = scale;
    }
#else
#if HALVES
    cache[at] = vec2(encode(x.x, x.y), encode(x.z, x.w));
#else
    cache[at] = bitcast<vec4<u32>>(x);
#endif
#endif
}
