// Loads a row, or a part of one, to the registers of LANES threads, VEC4S vec4s each. VECTORS: the elements of a vec4
// are adjacent and aligned. Otherwise neighbouring lanes take neighbouring elements (f16: words of two), and rows may
// begin and end anywhere. WHOLE: the row fills the registers exactly.
#import rows/params
#import element/fours

const VEC4S: u32 = 4u;

@group(0) @binding(1) var<storage, read> input: array<Words>;

struct Span {
    begin: u32, // index of its first element in the binding
    len: u32,
    column: u32, // column of its first element
    lane: u32,
}

// Returns span `number` of the dispatch, for a lane of the workgroup; empty after the last.
fn span_of(number: u32, lane: u32) -> Span {
    let row = number / params.parts;
    let exists = row < params.rows;
    let column = number % params.parts * params.part_len;
    return Span(
        params.origin + select(0u, row * params.n + column, exists),
        select(0u, min(params.part_len, params.n - column), exists),
        column,
        lane % LANES,
    );
}

// Returns the offsets of the elements of vec4 `number` in the span. Elements before the span wrap around.
fn offsets(span: Span, number: u32) -> vec4<u32> {
#if VECTORS
    return 4u * (span.lane + number * LANES) + vec4(0u, 1u, 2u, 3u);
#else
#if HALVES
    let a = 2u * (span.begin / 2u + span.lane + 2u * number * LANES) - span.begin;
    let b = a + 2u * LANES;
    return vec4(a, a + 1u, b, b + 1u);
#else
    return span.lane + LANES * (4u * number + vec4(0u, 1u, 2u, 3u));
#endif
#endif
}

fn inside(span: Span, number: u32) -> vec4<bool> {
#if WHOLE
    return vec4(true);
#else
    return offsets(span, number) < vec4(span.len);
#endif
}

#if !VECTORS
fn element(at: u32) -> f32 { return decode(input[at / PACK], at % PACK); }
#endif

// Loads vec4 `number`. There is no branch, so that all loads are in flight together: past the end, the last element
// is loaded.
fn load(span: Span, number: u32) -> vec4<f32> {
#if WHOLE
    return decode4(input[span.begin / 4u + span.lane + number * LANES]);
#else
    let last = max(span.len, 1u) - 1u;
    let at = span.begin + min(offsets(span, number), vec4(last));
#if VECTORS
    let x = decode4(input[at.x / 4u]);
#else
    let x = vec4(element(at.x), element(at.y), element(at.z), element(at.w));
#endif
    return select(vec4(params.pad), x, inside(span, number));
#endif
}
