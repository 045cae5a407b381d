// Casts f32 to f16, rounded to nearest, ties to even; or, with WIDEN, f16 to f32.
// One thread takes ITEMS_PER_THREAD vec4s. VECTORS: the number of elements is a multiple of four.
#import workgroup/index
#if WIDEN
#import element/fours_in
#else
#import element/fours_out
#endif

const WORKGROUP_SIZE: u32 = 256u;
const ITEMS_PER_THREAD: u32 = 4u;

struct Params { len: u32 }
@group(0) @binding(0) var<uniform> params: Params;

#if VECTORS
alias Floats = vec4<f32>;
#else
alias Floats = f32;
#endif

#if WIDEN
@group(0) @binding(2) var<storage, read_write> output: array<Floats>;

fn cast_four(at: u32) {
    if at >= params.len {
        return;
    }
    var x = load4(at);
#if VECTORS
    output[at / 4u] = x;
#else
    for (var i = 0u; i < min(4u, params.len - at); i++) {
        output[at + i] = x[i];
    }
#endif
}
#else
@group(0) @binding(1) var<storage, read> input: array<Floats>;

fn cast_four(at: u32) {
    if at >= params.len {
        return;
    }
#if VECTORS
    store4(at, input[at / 4u]);
#else
    let near = min(vec4(at) + vec4(0u, 1u, 2u, 3u), vec4(params.len - 1u));
    store4(at, vec4(input[near.x], input[near.y], input[near.z], input[near.w]));
#endif
}
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn cast_elements(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first = workgroup_index(group) * WORKGROUP_SIZE * ITEMS_PER_THREAD + lane;
#for i in ITEMS_PER_THREAD
    cast_four(4u * (first + {i}u * WORKGROUP_SIZE));
#end
}
