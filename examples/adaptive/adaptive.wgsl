// A grid refined where a field varies. measure_first, measure: a workgroup takes 8 x 8 samples of a cell, and flags the
// cell if their range exceeds the threshold. sum_leaves: sums the means of a level's leaves, one sum per 256 cells.
// sum_sums: adds those sums, in one workgroup.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 64u;
const SIDE: u32 = 8u; // samples of a cell, across and down
const SUMMED: u32 = 256u; // cells of a workgroup of sum_leaves
const NONE: u32 = 0xffffffffu;
const TAU: f32 = 6.2831853;

struct Params {
    field: u32, // its number; 4 is the image
    level: u32,
    deepest: u32,
    threshold: f32,
    width: u32, // of the image
    height: u32,
}
@group(0) @binding(0) var<uniform> params: Params;

// Cells: Morton code within the level; mean and range of the samples, as bits; first child.
@group(0) @binding(10) var<storage, read> count: array<u32>;
@group(0) @binding(11) var<storage, read> parents: array<u32>;
@group(0) @binding(12) var<storage, read_write> above: array<vec4<u32>>;
@group(0) @binding(13) var<storage, read_write> cells: array<vec4<u32>>;
@group(0) @binding(14) var<storage, read_write> flags: array<u32>;
@group(0) @binding(15) var<storage, read_write> numbers: array<u32>;
@group(0) @binding(16) var<storage, read> image: array<u32>; // four pixels a word

@group(0) @binding(20) var<storage, read> measured: array<vec4<u32>>;
@group(0) @binding(21) var<storage, read_write> sums_out: array<f32>;
@group(0) @binding(22) var<storage, read> sums: array<f32>;
@group(0) @binding(23) var<storage, read_write> total: array<f32>;

// The sine of an angle in turns, reduced to the range where devices are accurate.
fn sin_turns(turns: f32) -> f32 { return sin(TAU * (turns - round(turns))); }

// Fading ripples around two centres.
fn waves(p: vec2<f32>) -> f32 {
    let a = distance(p, vec2<f32>(0.30, 0.36));
    let b = distance(p, vec2<f32>(0.76, 0.70));
    return 0.5 + 0.3 * sin_turns(16.0 * a) * exp(-5.0 * a) + 0.3 * sin_turns(26.0 * b) * exp(-8.0 * b);
}

// A spiral with three arms, tighter near the centre: sin(3 angle - 12 ln(radius)), by powers of a complex number.
fn vortex(p: vec2<f32>) -> f32 {
    let d = p - vec2<f32>(0.46, 0.53);
    let r2 = dot(d, d) + 0.001;
    let c = vec2<f32>(d.x * (d.x * d.x - 3.0 * d.y * d.y), d.y * (3.0 * d.x * d.x - d.y * d.y)) / (r2 * sqrt(r2));
    let turns = 6.0 * log(r2) / TAU;
    let wave = c.y * sin_turns(turns + 0.25) - c.x * sin_turns(turns);
    return 0.5 + 0.5 * wave * exp(-10.0 * r2);
}

fn spot(p: vec2<f32>, x: f32, y: f32, radius: f32) -> f32 {
    let d = (p - vec2<f32>(x, y)) / radius;
    return exp(-dot(d, d));
}

fn spots(p: vec2<f32>) -> f32 {
    return 0.9 * spot(p, 0.22, 0.74, 0.090) + 0.8 * spot(p, 0.62, 0.60, 0.150) + spot(p, 0.80, 0.22, 0.040)
        + 0.9 * spot(p, 0.35, 0.28, 0.020) + 0.7 * spot(p, 0.12, 0.15, 0.060) + spot(p, 0.90, 0.86, 0.012);
}

// A step a thousandth wide across a line with five lobes: 5 angles by powers of a complex number.
fn step_field(p: vec2<f32>) -> f32 {
    let d = p - vec2<f32>(0.5, 0.5);
    let r = max(length(d), 1e-6);
    let u = d / r;
    let x2 = u.x * u.x;
    let lobes = u.x * (16.0 * x2 * x2 - 20.0 * x2 + 5.0);
    return clamp((0.32 + 0.09 * lobes - r) * 1000.0 + 0.5, 0.0, 1.0);
}

fn pixel(x: i32, y: i32) -> f32 {
    let column = u32(clamp(x, 0, i32(params.width) - 1));
    let row = u32(clamp(y, 0, i32(params.height) - 1));
    let at = row * params.width + column;
    return f32(extractBits(image[at / 4u], 8u * (at % 4u), 8u)) / 255.0;
}

// Interpolates between the centres of pixels.
fn image_at(p: vec2<f32>) -> f32 {
    let place = p * vec2<f32>(f32(params.width), f32(params.height)) - 0.5;
    let first = floor(place);
    let part = place - first;
    let x = i32(first.x);
    let y = i32(first.y);
    let top = mix(pixel(x, y), pixel(x + 1, y), part.x);
    let bottom = mix(pixel(x, y + 1), pixel(x + 1, y + 1), part.x);
    return mix(top, bottom, part.y);
}

// The field at a point of the unit square.
fn field(p: vec2<f32>) -> f32 {
    switch params.field {
        case 0u: { return waves(p); }
        case 1u: { return vortex(p); }
        case 2u: { return spots(p); }
        case 3u: { return step_field(p); }
        default: { return image_at(p); }
    }
}

// The even bits, packed.
fn gather(code: u32) -> u32 {
    var bits = code & 0x55555555u;
    bits = (bits | (bits >> 1u)) & 0x33333333u;
    bits = (bits | (bits >> 2u)) & 0x0f0f0f0fu;
    bits = (bits | (bits >> 4u)) & 0x00ff00ffu;
    return (bits | (bits >> 8u)) & 0x0000ffffu;
}

// Sum, minimum and maximum.
var<workgroup> wg_samples: array<vec3<f32>, WORKGROUP_SIZE>;

fn measure_cell(i: u32, code: u32, lane: u32) {
    let corner = vec2<u32>(gather(code), gather(code >> 1u)) * SIDE;
    let sample = corner + vec2<u32>(lane % SIDE, lane / SIDE);
    // Fractions of a power of two: exact.
    let p = (vec2<f32>(sample) + 0.5) / f32(SIDE << params.level);
    wg_samples[lane] = vec3<f32>(field(p));
    for (var stride = WORKGROUP_SIZE / 2u; stride > 0u; stride /= 2u) {
        workgroupBarrier();
        if lane < stride {
            let a = wg_samples[lane];
            let b = wg_samples[lane + stride];
            wg_samples[lane] = vec3<f32>(a.x + b.x, min(a.y, b.y), max(a.z, b.z));
        }
    }
    if lane == 0u {
        let all = wg_samples[0];
        let mean = all.x / f32(WORKGROUP_SIZE);
        let range = all.z - all.y;
        cells[i] = vec4<u32>(code, bitcast<u32>(mean), bitcast<u32>(range), NONE);
        flags[i] = u32(range > params.threshold && params.level < params.deepest);
        numbers[i] = i;
    }
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn measure_first(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(id);
    if i >= 1u << (2u * params.level) {
        return;
    }
    measure_cell(i, i, lane);
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn measure(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(id);
    if i >= count[0] {
        return;
    }
    let parent = parents[i / 4u];
    if lane == 0u && i % 4u == 0u {
        above[parent].w = i;
    }
    measure_cell(i, 4u * above[parent].x + i % 4u, lane);
}

var<workgroup> wg_sums: array<f32, SUMMED>;

fn sum_lanes(x: f32, lane: u32) {
    wg_sums[lane] = x;
    for (var stride = SUMMED / 2u; stride > 0u; stride /= 2u) {
        workgroupBarrier();
        if lane < stride {
            wg_sums[lane] += wg_sums[lane + stride];
        }
    }
}

@compute @workgroup_size(SUMMED)
fn sum_leaves(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let group = workgroup_index(id);
    let i = group * SUMMED + lane;
    var mean = 0.0;
    if i < count[0] && measured[i].w == NONE {
        mean = bitcast<f32>(measured[i].y);
    }
    sum_lanes(mean, lane);
    if lane == 0u && group * SUMMED < count[0] {
        sums_out[group] = wg_sums[0];
    }
}

@compute @workgroup_size(SUMMED)
fn sum_sums(@builtin(local_invocation_index) lane: u32) {
    let groups = (count[0] + SUMMED - 1u) / SUMMED;
    var sum = 0.0;
    for (var i = lane; i < groups; i += SUMMED) {
        sum += sums[i];
    }
    sum_lanes(sum, lane);
    if lane == 0u {
        total[params.level] = wg_sums[0];
    }
}
