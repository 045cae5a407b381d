// Elements as keys, whose unsigned order is the order of the elements: of f32 -inf ... -0, +0 ... +inf, NaN.
// Requires `four` (conv/lines_row) and `params` of its importer.
alias Keys = vec4<u32>;

#if BYTES
const KEY_BITS: u32 = 8u;

fn keys_of(elements: vec4<f32>) -> Keys { return Keys(elements); }

fn elements_of(keys: Keys) -> vec4<f32> { return vec4<f32>(keys); }
#else
const KEY_BITS: u32 = 32u;

fn keys_of(elements: vec4<f32>) -> Keys {
    let bits = bitcast<Keys>(elements);
    let keys = select(bits | Keys(0x80000000u), ~bits, bits >= Keys(0x80000000u));
    return select(keys, Keys(0xffffffffu), (bits & Keys(0x7fffffffu)) > Keys(0x7f800000u));
}

// The key of NaN becomes a NaN.
fn elements_of(keys: Keys) -> vec4<f32> {
    return bitcast<vec4<f32>>(select(~keys, keys & Keys(0x7fffffffu), keys >= Keys(0x80000000u)));
}
#endif

// The keys of the four elements from `e` on of row `y` of the plane of `p`; both may lie outside of the image.
fn row_keys(p: vec3<u32>, y: i32, e: i32) -> Keys {
    let row = (p.z * params.h + fold(y, params.h)) * params.w;
    return keys_of(select(vec4<f32>(), four(row, e), counts(y, params.h)));
}
