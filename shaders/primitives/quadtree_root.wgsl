// Computes the square of the tree, and its first node. One thread. The square is given, or its corner has the least
// coordinates and its side is the larger extent.

const NONE: u32 = 0xffffffffu;

struct Params {
    low: vec2<f32>,
    side: f32,
    given: u32, // whether the square is
    capacity: u32,
    depth: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> bounds: array<u32>;
@group(0) @binding(2) var<storage, read> inside: array<u32>; // number of points with a place
@group(0) @binding(3) var<storage, read_write> square: array<f32>; // low x, low y, side, finest columns a unit
@group(0) @binding(4) var<storage, read_write> nodes: array<u32>;
@group(0) @binding(5) var<storage, read_write> flags: array<u32>;
@group(0) @binding(6) var<storage, read_write> numbers: array<u32>;
@group(0) @binding(7) var<storage, read_write> length: array<u32>;
@group(0) @binding(8) var<storage, read_write> count: array<u32>;

fn of_key(key: u32) -> f32 { return bitcast<f32>(select(~key, key & 0x7fffffffu, (key & 0x80000000u) != 0u)); }

// 2^16 / side for a normal side, rounded to nearest as the processor rounds it: WGSL's division may be off by 2.5 units
// in the last place. 2^47 divided by the significand, bit by bit.
fn scale_of(side: f32) -> f32 {
    let bits = bitcast<u32>(side);
    let divisor = (bits & 0x7fffffu) | 0x800000u;
    var rest = 0x800000u;
    var quotient = 0u;
    if rest >= divisor {
        rest = 0u;
        quotient = 1u;
    }
    for (var i = 0u; i < 24u; i++) {
        rest <<= 1u;
        quotient <<= 1u;
        if rest >= divisor {
            rest -= divisor;
            quotient |= 1u;
        }
    }
    quotient += u32(2u * rest > divisor);
    // The quotient is 2^24 for a power of two, and below otherwise. Its unit is 2^(119 - exponent).
    let power = u32(quotient == 0x1000000u);
    let exponent = 269u + power - ((bits >> 23u) & 0xffu);
    return bitcast<f32>((exponent << 23u) | ((quotient >> power) & 0x7fffffu));
}

@compute @workgroup_size(1)
fn quadtree_root() {
    var low = params.low;
    var side = params.side;
    if params.given == 0u {
        low = vec2<f32>(0.0);
        side = 1.0;
        if inside[0] > 0u {
            low = vec2<f32>(of_key(bounds[0]), of_key(bounds[2]));
            let extent = max(of_key(bounds[1]) - low.x, of_key(bounds[3]) - low.y);
            // All points in one place, or so close that a device may flush differences to 0.
            side = select(1.0, extent, extent >= 7.8886090522101181e-31);
        }
    }
    square[0] = low.x;
    square[1] = low.y;
    square[2] = side;
    square[3] = scale_of(side);
    nodes[0] = NONE;
    nodes[1] = 0u;
    nodes[2] = inside[0];
    nodes[3] = 0u;
    nodes[4] = 0u;
    nodes[5] = 0u;
    flags[0] = u32(inside[0] > params.capacity && params.depth > 0u);
    numbers[0] = 0u;
    length[0] = 1u;
    count[0] = 1u;
}
