// Measures the cells of a level, and flags those that split: one workgroup takes 8 x 8 samples of one cell, and reduces
// them to mean and range. A cell with a sample that is not finite has NaN for both, and does not split. FIRST: the level
// is the first one, and holds every cell.
#import primitives/adaptive_grid_image as field
#import workgroup/index

const WORKGROUP_SIZE: u32 = 64u;
const SIDE: u32 = 8u; // samples of a cell, across and down
const NONE: u32 = 0xffffffffu;
const WORDS: u32 = 4u; // first child, level, x, y

struct Params {
    level: u32,
    depth: u32,
    threshold: f32,
    width: u32,
    height: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
#if FIRST
const IMAGE_BINDING: u32 = 7u;
@group(0) @binding(1) var<storage, read_write> count: array<u32>;
@group(0) @binding(2) var<storage, read_write> level_cells: array<u32>;
@group(0) @binding(3) var<storage, read_write> nodes: array<u32>;
@group(0) @binding(4) var<storage, read_write> values: array<vec2<u32>>; // bits of mean and range
@group(0) @binding(5) var<storage, read_write> flags: array<u32>;
@group(0) @binding(6) var<storage, read_write> numbers: array<u32>;
#else
const IMAGE_BINDING: u32 = 8u;
@group(0) @binding(1) var<storage, read> count: array<u32>;  // cells of all levels, this one too
@group(0) @binding(2) var<storage, read> level_cells: array<u32>; // cells of this level
@group(0) @binding(3) var<storage, read> parents: array<u32>;
@group(0) @binding(4) var<storage, read_write> nodes: array<u32>;
@group(0) @binding(5) var<storage, read_write> values: array<vec2<u32>>; // bits of mean and range
@group(0) @binding(6) var<storage, read_write> flags: array<u32>;
@group(0) @binding(7) var<storage, read_write> numbers: array<u32>;
#endif

// Sum, minimum, maximum, and the number of samples that are not finite.
alias Acc = vec4<f32>;

fn op_combine(a: Acc, b: Acc) -> Acc { return vec4<f32>(a.x + b.x, min(a.y, b.y), max(a.z, b.z), a.w + b.w); }
#import workgroup/reduce

// The even bits, packed.
fn gather(code: u32) -> u32 {
    var bits = code & 0x55555555u;
    bits = (bits | (bits >> 1u)) & 0x33333333u;
    bits = (bits | (bits >> 2u)) & 0x0f0f0f0fu;
    bits = (bits | (bits >> 4u)) & 0x00ff00ffu;
    return (bits | (bits >> 8u)) & 0x0000ffffu;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn adaptive_grid_measure(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group);
#if FIRST
    let cells = 1u << (2u * params.level);
    if i >= cells { return; }
    let own = i;
    let place = vec2<u32>(gather(i), gather(i >> 1u));
    if i == 0u && lane == 0u {
        count[0] = cells;
        level_cells[0] = cells;
    }
#else
    if i >= level_cells[0] { return; }
    let own = count[0] - level_cells[0] + i;
    let parent = WORDS * parents[i / 4u];
    let quarter = i % 4u;
    let place = 2u * vec2<u32>(nodes[parent + 2u], nodes[parent + 3u]) + vec2<u32>(quarter & 1u, quarter >> 1u);
    if lane == 0u && quarter == 0u { nodes[parent] = own; }
#endif
    let at = SIDE * place + vec2<u32>(lane % SIDE, lane / SIDE);
    // Fractions of a power of two: exact.
    let x = field((vec2<f32>(at) + 0.5) / f32(SIDE << params.level));
    let finite = (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u;
    let known = select(0.0, x, finite);
    let all = workgroup_reduce(vec4<f32>(known, known, known, f32(!finite)), lane);
    if lane == 0u {
        let range = all.z - all.y;
        var value = vec2<u32>(0x7fc00000u);
        if all.w == 0.0 { value = bitcast<vec2<u32>>(vec2<f32>(all.x / f32(WORKGROUP_SIZE), range)); }
        nodes[WORDS * own] = NONE;
        nodes[WORDS * own + 1u] = params.level;
        nodes[WORDS * own + 2u] = place.x;
        nodes[WORDS * own + 3u] = place.y;
        values[own] = value;
        flags[i] = u32(all.w == 0.0 && range > params.threshold && params.level < params.depth);
        numbers[i] = own;
    }
}
