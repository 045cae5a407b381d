// Quantiles between neighbours of sorted numbers. A thread finds one. Its place is the product of two numbers in f64,
// rounded as processors do: 53 bits of the quantile times 32 bits of the last place.
#import dispatch/extent
#import op/philox
#import workgroup/index

const WORKGROUP_SIZE: u32 = 64u;

struct Params { n: u32, quantiles: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> sorted: array<u32>;
// Of each quantile: 53 bits, the high ones first; by how many places they stand too far left; the quantile in f32.
@group(0) @binding(2) var<storage, read> table: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> output: array<u32>;

#put extent(params.n, 0u)

// Words of a number of two words shifted, by 0 to 31 places: the high one to the left, the low one to the right.
fn left(high: u32, low: u32, by: u32) -> u32 { return (high << by) | ((low >> 1u) >> (31u - by)); }
fn right(high: u32, low: u32, by: u32) -> u32 { return (low >> by) | ((high << 1u) << (31u - by)); }

// A place in the sorted numbers: a whole number, and two words behind the point.
fn place_of(bits: vec2<u32>, far: u32, last: u32) -> vec3<u32> {
    let low = wide_product(bits.y, last);
    let high = wide_product(bits.x, last);
    // The lowest word first.
    var product = vec3<u32>(low.x, low.y + high.x, high.y);
    product.z += select(0u, 1u, product.y < low.y);
    // The product has 53 bits, and those that must go: to the nearest, or to the even one.
    let length = 96u - select(32u + countLeadingZeros(product.y), countLeadingZeros(product.z), product.z > 0u);
    if length > 53u {
        let gone = length - 53u;
        let odd = right(product.y, product.x, gone - 1u) >> 1u;
        let half = (1u << (gone - 1u)) - 1u + (odd & 1u);
        let sum = product.x + half;
        let carried = sum < half;
        product.x = (((sum >> (gone - 1u)) >> 1u) << (gone - 1u)) << 1u;
        product.y += select(0u, 1u, carried);
        product.z += select(0u, 1u, carried && product.y == 0u);
    }
    if far <= 64u {
        let by = 64u - far;
        return vec3<u32>(left(product.z, product.y, by), left(product.y, product.x, by), product.x << by);
    }
    let by = far - 64u;
    return vec3<u32>(product.z >> by, right(product.z, product.y, by), right(product.y, product.x, by));
}

// Two words behind the point as a number, rounded to 24 bits.
fn share_of(words: vec2<u32>) -> f32 {
    let skipped = select(0u, 32u, words.x == 0u);
    let high = select(words.x, words.y, words.x == 0u);
    let low = select(words.y, 0u, words.x == 0u);
    if high == 0u { return 0.0; }
    let zeros = countLeadingZeros(high);
    let top = left(high, low, zeros);
    let rounded = (top >> 8u) + ((top >> 7u) & 1u);
    return f32(rounded) * bitcast<f32>((103u - zeros - skipped) << 23u);
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn quantile_sort(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if at >= params.quantiles { return; }
    let n = extent();
    if n == 0u {
        output[at] = 0x7fc00000u;
        return;
    }
    let last = n - 1u;
    let quantile = table[at];
    var rank = 0u;
    var share = f32(last) * bitcast<f32>(quantile.w);
    // Further left the place is below 1/2.
    if quantile.z <= 85u {
        let place = place_of(quantile.xy, quantile.z, last);
        rank = place.x;
        share = share_of(place.yz);
    }
    let bits = sorted[rank];
    let first = bitcast<f32>(bits);
    let second = bitcast<f32>(sorted[min(rank + 1u, last)]);
    // Differences of large numbers may overflow, so each is multiplied.
    let between = (1.0 - share) * first + share * second;
    output[at] = select(bitcast<u32>(between), bits, share == 0.0 || first == second);
}
