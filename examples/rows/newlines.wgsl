// Finds newlines: for each group of eight bytes, its number times 256 plus one bit per newline. One thread marks one
// group; Select keeps the marks with newlines.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params { groups: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> text: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> marks: array<u32>;

// Bit i: byte i of the word is a newline.
fn newlines(word: u32) -> u32 {
    let x = word ^ 0x0a0a0a0au;
    // 0x80 in each zero byte; the sum never carries into another byte.
    let zeros = ~(((x & 0x7f7f7f7fu) + 0x7f7f7f7fu) | x | 0x7f7f7f7fu);
    return ((zeros >> 7u) * 0x01020408u) >> 24u;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn mark_newlines(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let group = workgroup_index(id) * WORKGROUP_SIZE + lane;
    if group >= params.groups {
        return;
    }
    let bytes = text[group];
    marks[group] = (group << 8u) | (newlines(bytes.y) << 4u) | newlines(bytes.x);
}
