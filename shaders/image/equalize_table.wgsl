// Makes the table of a channel: the new value of each of 256 values, from the number of pixels with it and with at most
// it. One workgroup; one thread computes the entry of one value.
const BINS: u32 = 256u;

struct Params {
    first: u32, // the channel's first place in the tables
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> sums: array<u32>;
#if BYTES
@group(0) @binding(2) var<storage, read_write> tables: array<u32>;
@group(0) @binding(3) var<storage, read> counts: array<u32>;

var<workgroup> wg_least: u32;

// a k, for k below 2^16, as two parts that compare in order.
fn times(a: u32, k: u32) -> vec2<u32> {
    let low = (a & 0xffffu) * k;
    return vec2((a >> 16u) * k + (low >> 16u), low & 0xffffu);
}
#else
@group(0) @binding(2) var<storage, read_write> tables: array<f32>;
#endif

@compute @workgroup_size(BINS)
fn equalize_table(@builtin(local_invocation_index) value: u32) {
    let total = sums[BINS - 1u];
#if BYTES
    // Pixels of the darkest value that there is: the only one with as many below it as there are of it.
    if counts[value] > 0u && sums[value] == counts[value] { wg_least = counts[value]; }
    workgroupBarrier();
    // 255 part / whole, rounded half up: the largest m with whole (2 m - 1) <= 510 part. All alike stay as they are.
    var m = value;
    let whole = total - wg_least;
    if total > 0u && whole > 0u {
        let part = times(max(sums[value], wg_least) - wg_least, 510u);
        m = 0u;
        for (var bit = 128u; bit > 0u; bit /= 2u) {
            let least = times(whole, 2u * (m + bit) - 1u);
            if least.x < part.x || (least.x == part.x && least.y <= part.y) { m += bit; }
        }
    }
    tables[params.first + value] = m;
#else
    tables[params.first + value] = f32(sums[value]) / f32(max(total, 1u));
#endif
}
