// output[i] = apply(i, a, b, c, d): a function of up to four operands, each of a type of its own. An operand has an
// element for each of the output, or is a row (ROW_k), a column (COLUMN_k) or a single number (SCALAR_k). A thread
// makes the elements of a word; a word that the output fills only in part keeps the rest.
#import dispatch/extent
#import element/halves
#import element/is_nan
#import elementwise/transform_functions as function
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const INPUTS: u32 = 1u;
const OUTPUT_BINDING: u32 = 2u;
alias A = f32;
alias B = f32;
alias C = f32;
alias D = f32;
alias R = f32;

struct Params {
    rows: u32,
    columns: u32,
    pad: vec2<u32>,
    given: array<vec4<f32>, 2>,
}
@group(0) @binding(0) var<uniform> params: Params;

#put extent(params.rows, 0u)

fn param(k: u32) -> f32 { return params.given[(k / 4u) & 1u][k % 4u]; }
fn columns() -> u32 { return params.columns; }

#for k in INPUTS
@group(0) @binding({k + 1}) var<storage, read> input_{k}: array<u32>;

fn place_{k}(i: u32) -> u32 {
#if ROW_{k}
    return i % params.columns;
#else
#if COLUMN_{k}
    return i / params.columns;
#else
#if SCALAR_{k}
    return 0u;
#else
    return i;
#endif
#endif
#endif
}
#if F32_{k}
fn load_{k}(at: u32) -> f32 { return bitcast<f32>(input_{k}[at]); }
#endif
#if F16_{k}
fn load_{k}(at: u32) -> f32 { return decode(input_{k}[at / 2u], at % 2u); }
#endif
#if I32_{k}
fn load_{k}(at: u32) -> i32 { return bitcast<i32>(input_{k}[at]); }
#endif
#if U32_{k}
fn load_{k}(at: u32) -> u32 { return input_{k}[at]; }
#endif
#if U8_{k}
fn load_{k}(at: u32) -> u32 { return extractBits(input_{k}[at / 4u], 8u * (at % 4u), 8u); }
#endif
#if I8_{k}
fn load_{k}(at: u32) -> i32 { return extractBits(bitcast<i32>(input_{k}[at / 4u]), 8u * (at % 4u), 8u); }
#endif
#end

@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<u32>;

fn element(i: u32) -> R {
    return apply(
        i,
#for k in INPUTS
        load_{k}(place_{k}(i)),
#end
    );
}

#if OUT_F16
const PER_WORD: u32 = 2u;
fn bits_of(x: R) -> u32 { return encode(x, x) & 0xffffu; }
#else
#if OUT_U8 || OUT_I8
const PER_WORD: u32 = 4u;
fn bits_of(x: R) -> u32 { return bitcast<u32>(x) & 0xffu; }
#else
const PER_WORD: u32 = 1u;
fn bits_of(x: R) -> u32 { return bitcast<u32>(x); }
#endif
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn transform(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let word = workgroup_index(group) * WORKGROUP_SIZE + lane;
    let first = word * PER_WORD;
    let end = extent() * params.columns;
    if first >= end { return; }
#if OUT_F32 || OUT_I32 || OUT_U32
    output[word] = bits_of(element(first));
#else
    let count = min(PER_WORD, end - first);
    let bits = 32u / PER_WORD;
    var made = 0u;
    if count < PER_WORD { made = output[word]; }
    for (var k = 0u; k < count; k++) { made = insertBits(made, bits_of(element(first + k)), k * bits, bits); }
    output[word] = made;
#endif
}
