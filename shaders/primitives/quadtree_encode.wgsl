// Computes the code of each point: that of its column and row among 2^16 x 2^16. Points without a place, which the list
// has last, get the largest code. One thread per point.
#import primitives/quadtree_bits
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const LAST: f32 = 65535.0; // last column and row

struct Params { n: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> points: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read> list: array<u32>;
@group(0) @binding(3) var<storage, read> inside: array<u32>;
@group(0) @binding(4) var<storage, read> square: array<f32>;
@group(0) @binding(5) var<storage, read_write> codes: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn quadtree_encode(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i >= params.n { return; }
    var code = 0xffffffffu;
    if i < inside[0] {
        // One subtraction and one product, each rounded once: the processor gets the same bits.
        let offset = points[list[i]] - vec2<f32>(square[0], square[1]);
        let place = clamp(offset, vec2<f32>(0.0), vec2<f32>(square[2])) * square[3];
        let at = vec2<u32>(min(floor(place), vec2<f32>(LAST)));
        code = morton_code(at.x, at.y);
    }
    codes[i] = code;
}
