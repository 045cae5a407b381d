// A row, or a part of one, in the registers of LANES invocations: QUADS times four elements each. VECTORS: the
// four lie together and aligned. Otherwise lanes take neighbouring elements (halves: words of two), and rows
// may begin and end anywhere. WHOLE: the registers hold no more than the row has.
#import rows/params
#import element/fours

const QUADS: u32 = 4u;

@group(0) @binding(1) var<storage, read> input: array<Words>;

struct Span {
    begin: u32, // its first element in the binding
    len: u32,
    column: u32, // of its first element
    lane: u32,
}

// Span number `number` of the dispatch, for a lane of the workgroup; empty beyond the last.
fn span_of(number: u32, lane: u32) -> Span {
    let row = number / params.parts;
    let there = row < params.rows;
    let column = number % params.parts * params.part_len;
    return Span(
        params.origin + select(0u, row * params.n + column, there),
        select(0u, min(params.part_len, params.n - column), there),
        column,
        lane % LANES,
    );
}

// Of the four elements of a quad, counted from the span's first; what lies before that wraps.
fn offsets(span: Span, quad: u32) -> vec4<u32> {
#if VECTORS
    return 4u * (span.lane + quad * LANES) + vec4(0u, 1u, 2u, 3u);
#else
#if HALVES
    let a = 2u * (span.begin / 2u + span.lane + 2u * quad * LANES) - span.begin;
    let b = a + 2u * LANES;
    return vec4(a, a + 1u, b, b + 1u);
#else
    return span.lane + LANES * (4u * quad + vec4(0u, 1u, 2u, 3u));
#endif
#endif
}

fn inside(span: Span, quad: u32) -> vec4<bool> {
#if WHOLE
    return vec4(true);
#else
    return offsets(span, quad) < vec4(span.len);
#endif
}

#if !VECTORS
fn element(at: u32) -> f32 { return decode(input[at / PACK], at % PACK); }
#endif

// No branch around the loads, so that all are in flight together: what lies beyond is loaded from the end.
fn load(span: Span, quad: u32) -> vec4<f32> {
#if WHOLE
    return decode4(input[span.begin / 4u + span.lane + quad * LANES]);
#else
    let last = max(span.len, 1u) - 1u;
    let at = span.begin + min(offsets(span, quad), vec4(last));
#if VECTORS
    let x = decode4(input[at.x / 4u]);
#else
    let x = vec4(element(at.x), element(at.y), element(at.z), element(at.w));
#endif
    return select(vec4(params.pad), x, inside(span, quad));
#endif
}
