// `fn store(span: Span, number: u32, x: vec4<f32>)`: stores vec4 `number` of a span, SCALED by gamma and SHIFTED by
// beta. The importer imports rows/load.
const OUTPUT: u32 = 2u;

#if SCALED
@group(0) @binding(2) var<storage, read> gamma: array<Words>;
#endif
#if SHIFTED
@group(0) @binding(3) var<storage, read> beta: array<Words>;
#endif

#if VECTORS
@group(0) @binding(OUTPUT) var<storage, read_write> output: array<Words>;
#else
#if HALVES
// Two rows may share a word: each writes its own half.
@group(0) @binding(OUTPUT) var<storage, read_write> output: array<atomic<u32>>;

fn store_word(span: Span, offset: u32, a: f32, b: f32) {
    let word = encode(a, b);
    let at = (span.begin + offset) / 2u;
    let low = offset < span.len;
    if low && offset + 1u < span.len {
        atomicStore(&output[at], word);
    } else if low || offset + 1u < span.len {
        let mask = select(0xffff0000u, 0xffffu, low);
        atomicAnd(&output[at], ~mask);
        atomicOr(&output[at], word & mask);
    }
}
#else
@group(0) @binding(OUTPUT) var<storage, read_write> output: array<u32>;
#endif
#endif

fn store(span: Span, number: u32, x: vec4<f32>) {
    let offset = offsets(span, number);
    var y = x;
#if SCALED
    let column = min(span.column + offset, vec4(params.n - 1u));
#if VECTORS
    y *= decode4(gamma[column.x / 4u]);
#if SHIFTED
    y += decode4(beta[column.x / 4u]);
#endif
#else
    let word = column / PACK;
    let part = column % PACK;
    y *= vec4(
        decode(gamma[word.x], part.x),
        decode(gamma[word.y], part.y),
        decode(gamma[word.z], part.z),
        decode(gamma[word.w], part.w),
    );
#if SHIFTED
    y += vec4(
        decode(beta[word.x], part.x),
        decode(beta[word.y], part.y),
        decode(beta[word.z], part.z),
        decode(beta[word.w], part.w),
    );
#endif
#endif
#endif
#if VECTORS
#if WHOLE
    output[(span.begin + offset.x) / 4u] = encode4(y);
#else
    if offset.x < span.len {
        output[(span.begin + offset.x) / 4u] = encode4(y);
    }
#endif
#else
#if HALVES
    store_word(span, offset.x, y.x, y.y);
    store_word(span, offset.z, y.z, y.w);
#else
    let to = span.begin + offset;
    let stored = bitcast<vec4<u32>>(y);
    let valid = inside(span, number);
    if valid.x {
        output[to.x] = stored.x;
    }
    if valid.y {
        output[to.y] = stored.y;
    }
    if valid.z {
        output[to.z] = stored.z;
    }
    if valid.w {
        output[to.w] = stored.w;
    }
#endif
#endif
}
