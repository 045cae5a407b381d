// A quadtree over points sorted by Morton code (G. M. Morton, 1966): a cell is a range of them. encode: the code and
// index of each point, one thread per point. plant: the root. divide: the children of splitting cells, one thread per
// child, by binary search in the parent's range.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const NONE: u32 = 0xffffffffu;
const LAST: f32 = 65535.0; // last column and row of the finest level

struct Params {
    low: vec2<f32>, // corner of the square
    scale: f32,     // columns of the finest level per unit of length
    n: u32,         // points
    leaf: u32,      // maximum points of a leaf
    level: u32,
    deepest: u32,
}
@group(0) @binding(0) var<uniform> params: Params;

@group(0) @binding(1) var<storage, read> points: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> codes_out: array<u32>;
@group(0) @binding(3) var<storage, read_write> order_out: array<u32>;

// Cells: path from the root in base 4; first point; number of points; first child.
@group(0) @binding(10) var<storage, read> count: array<u32>;
@group(0) @binding(11) var<storage, read> parents: array<u32>;
@group(0) @binding(12) var<storage, read_write> above: array<vec4<u32>>;
@group(0) @binding(13) var<storage, read_write> cells: array<vec4<u32>>;
@group(0) @binding(14) var<storage, read_write> flags: array<u32>;
@group(0) @binding(15) var<storage, read_write> numbers: array<u32>;
@group(0) @binding(16) var<storage, read> codes: array<u32>;

fn invocation(id: vec3<u32>, lane: u32) -> u32 { return workgroup_index(id) * WORKGROUP_SIZE + lane; }

// Moves bit i of 16 to bit 2 i.
fn spread(x: u32) -> u32 {
    var bits = x;
    bits = (bits | (bits << 8u)) & 0x00ff00ffu;
    bits = (bits | (bits << 4u)) & 0x0f0f0f0fu;
    bits = (bits | (bits << 2u)) & 0x33333333u;
    return (bits | (bits << 1u)) & 0x55555555u;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn encode(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = invocation(id, lane);
    if i >= params.n {
        return;
    }
    // One subtraction and one product, each rounded once: the processor gets the same bits.
    let place = floor((points[i] - params.low) * params.scale);
    let at = vec2<u32>(clamp(place, vec2<f32>(0.0), vec2<f32>(LAST)));
    codes_out[i] = spread(at.x) | (spread(at.y) << 1u);
    order_out[i] = i;
}

fn put(i: u32, path: u32, begin: u32, end: u32) {
    cells[i] = vec4<u32>(path, begin, end - begin, NONE);
    flags[i] = u32(end - begin > params.leaf && params.level < params.deepest);
    numbers[i] = i;
}

@compute @workgroup_size(1)
fn plant() {
    put(0u, 0u, 0u, params.n);
}

// The first point in a range whose code is at least `code`.
fn first_from(code: u32, begin: u32, end: u32) -> u32 {
    var low = begin;
    var high = end;
    while low < high {
        let middle = low + (high - low) / 2u;
        if codes[middle] < code {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    return low;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn divide(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = invocation(id, lane);
    if i >= count[0] {
        return;
    }
    let parent = parents[i / 4u];
    let quarter = i % 4u;
    let range = above[parent].xyz;
    let path = 4u * range.x + quarter;
    let shift = 32u - 2u * params.level;
    var begin = range.y;
    var end = range.y + range.z;
    if quarter > 0u {
        begin = first_from(path << shift, begin, end);
    } else {
        above[parent].w = i;
    }
    if quarter < 3u {
        end = first_from((path + 1u) << shift, begin, end);
    }
    put(i, path, begin, end);
}
