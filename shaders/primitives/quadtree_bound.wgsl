// Finds the extent of the points, and flags those inside +-2^126: others, infinities and NaN among them, belong to no
// node. One thread takes one point, and a workgroup of 256 joins its bounds by atomics: minima and maxima of keys whose
// unsigned order is that of the floats.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const BEYOND: u32 = 0x7e800000u; // the bits of 2^126

struct Params { n: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> points: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> flags: array<u32>;
@group(0) @binding(3) var<storage, read_write> numbers: array<u32>;
@group(0) @binding(4) var<storage, read_write> bounds: array<atomic<u32>>; // least x, largest x, least y, largest y

alias Acc = vec4<u32>;

fn op_combine(a: Acc, b: Acc) -> Acc {
    return vec4<u32>(min(a.x, b.x), max(a.y, b.y), min(a.z, b.z), max(a.w, b.w));
}
#import workgroup/reduce

fn order_key(bits: u32) -> u32 { return select(bits | 0x80000000u, ~bits, (bits & 0x80000000u) != 0u); }

@compute @workgroup_size(WORKGROUP_SIZE)
fn quadtree_bound(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    var own = vec4<u32>(0xffffffffu, 0u, 0xffffffffu, 0u);
    if i < params.n {
        let point = points[i];
        let inside = all((point & vec2<u32>(0x7fffffffu)) < vec2<u32>(BEYOND));
        flags[i] = u32(inside);
        numbers[i] = i;
        if inside {
            let x = order_key(point.x);
            let y = order_key(point.y);
            own = vec4<u32>(x, x, y, y);
        }
    }
    let joined = workgroup_reduce(own, lane);
    if lane == 0u && joined.x <= joined.y {
        atomicMin(&bounds[0], joined.x);
        atomicMax(&bounds[1], joined.y);
        atomicMin(&bounds[2], joined.z);
        atomicMax(&bounds[3], joined.w);
    }
}
