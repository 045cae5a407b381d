// Makes the nodes of a level: one thread per node finds its points by binary search in the range of its parent, since
// points are sorted by code. Also flags the nodes that split.
#import primitives/quadtree_bits
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const NONE: u32 = 0xffffffffu;
const WORDS: u32 = 6u; // first child, first point, points, level, x, y

struct Params {
    capacity: u32,
    level: u32, // not 0
    depth: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> count: array<u32>;  // nodes of all levels, this one too
@group(0) @binding(2) var<storage, read> length: array<u32>; // nodes of this level
@group(0) @binding(3) var<storage, read> parents: array<u32>;
@group(0) @binding(4) var<storage, read> codes: array<u32>;
@group(0) @binding(5) var<storage, read_write> nodes: array<u32>;
@group(0) @binding(6) var<storage, read_write> flags: array<u32>;
@group(0) @binding(7) var<storage, read_write> numbers: array<u32>;

// The first point in a range whose code is at least `code`: at most 32 rounds.
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
fn quadtree_divide(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i >= length[0] { return; }
    let own = count[0] - length[0] + i;
    let parent = WORDS * parents[i / 4u];
    let quarter = i % 4u;
    let x = 2u * nodes[parent + 4u] + (quarter & 1u);
    let y = 2u * nodes[parent + 5u] + (quarter >> 1u);
    let code = morton_code(x, y);
    let shift = 32u - 2u * params.level;
    var begin = nodes[parent + 1u];
    var end = begin + nodes[parent + 2u];
    let all = end;
    if quarter > 0u {
        begin = first_from(code << shift, begin, all);
    } else {
        nodes[parent] = own;
    }
    if quarter < 3u { end = first_from((code + 1u) << shift, begin, all); }
    let at = WORDS * own;
    nodes[at] = NONE;
    nodes[at + 1u] = begin;
    nodes[at + 2u] = end - begin;
    nodes[at + 3u] = params.level;
    nodes[at + 4u] = x;
    nodes[at + 5u] = y;
    flags[i] = u32(end - begin > params.capacity && params.level < params.depth);
    numbers[i] = own;
}
