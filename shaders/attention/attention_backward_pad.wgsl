// Copies rows of FROM elements to rows of TO elements: cuts them, or pads them with zeros.
// A thread writes a word.
#import workgroup/index
#import element/f32 as element

const WORKGROUP_SIZE: u32 = 256u;
const FROM: u32 = 6u;
const TO: u32 = 8u;

struct Params {
    // Elements of the result.
    len: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<u32>;
@group(0) @binding(2) var<storage, read_write> output: array<u32>;

fn element(i: u32) -> T {
    let column = i % TO;
    if column >= FROM || i >= params.len {
        return T();
    }
    let at = i / TO * FROM + column;
    return decode(input[at / PACK], at % PACK);
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn attention_backward_pad(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let first = (workgroup_index(id) * WORKGROUP_SIZE + local) * PACK;
    if first < params.len {
        var word = encode(element(first), element(first + PACK - 1u));
        // What follows an odd number of halves stays as it is.
        if first + PACK > params.len { word = (word & 0xffffu) | (output[first / PACK] & 0xffff0000u); }
        output[first / PACK] = word;
    }
}
