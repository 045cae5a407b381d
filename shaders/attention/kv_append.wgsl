// Appends rows of new keys, or values, to a cache. With BYTES it quantises them: a scale for each row, then codes of
// the elements divided by the scale.
// LANES threads copy a row, four elements each; a workgroup copies several rows.
#import attention/attention_visible
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
#endif
#if DIMS % 4 > 0
#if BYTES || HALVES
@group(0) @binding(CACHE_BINDING) var<storage, read_write> cache: array<atomic<u32>>;
#if BYTES
#put shared_words(cache, 8)
#else
#put shared_words(cache, 16)
#endif
#else
@group(0) @binding(CACHE_BINDING) var<storage, read_write> cache: array<u32>;
#endif
#else
#if BYTES
@group(0) @binding(CACHE_BINDING) var<storage, read_write> cache: array<u32>;
#else
#if HALVES
@group(0) @binding(CACHE_BINDING) var<storage, read_write> cache: array<vec2<u32>>;
#else
@group(0) @binding(CACHE_BINDING) var<storage, read_write> cache: array<vec4<u32>>;
#endif
#endif
#endif
#if BYTES
@group(0) @binding(SCALES_BINDING) var<storage, read_write> scales: array<f32>;
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn kv_append(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let index = workgroup_index(id) * (WORKGROUP_SIZE / LANES) + local / LANES;
    let row = params.first_row + min(index, params.rows - 1u);
    let lane = local % LANES;
    let pair = row / params.queries;
    // Clamped before the addition, since an invalid length could overflow it.
    let key = min(lengths[pair / params.kv_heads], params.keys) + row % params.queries;
    let live = index < params.rows && lane < VEC4S && key < params.keys;
    let x = select(vec4<f32>(), query_vec4(row, min(lane, VEC4S - 1u)), lane < VEC4S);
#if BYTES
    let largest = row_total(abs(x), true, 0u, local, 1u);
    let scale = largest / LARGEST;
#endif
    if !live {
        return;
    }
    let to = row_of(pair, key);
    if to == NO_ROW {
        return;
    }
#if DIMS % 4 > 0
    let at = to * DIMS + 4u * lane - 4u * params.base_kv;
#else
    let at = to * VEC4S + lane - params.base_kv;
#endif
#if BYTES
    let quotients = select(x / scale, vec4<f32>(), vec4(scale == 0.0));
#endif
#if DIMS % 4 > 0
#if BYTES
#if FP8
    let codes = pack_fp8(quotients);
#else
    let codes = pack_int8(quotients);
#endif
#endif
#for e in 4
    if 4u * lane + {e}u < DIMS {
#if BYTES
        store_element(at + {e}u, codes >> {8 * e}u);
#else
#if HALVES
        store_element(at + {e}u, encode(x[{e}], 0.0));
#else
        cache[at + {e}u] = bitcast<u32>(x[{e}]);
#endif
#endif
    }
#end
#else
#if BYTES
#if FP8
    cache[at] = pack_fp8(quotients);
#else
    cache[at] = pack_int8(quotients);
#endif
#else
#if HALVES
    cache[at] = vec2(encode(x.x, x.y), encode(x.z, x.w));
#else
    cache[at] = bitcast<vec4<u32>>(x);
#endif
#endif
#endif
#if BYTES
    if lane == 0u {
        scales[params.kv_rows + to] = scale;
    }
#endif
}
