// Moves bytes between a slice that begins anywhere and memory of its own, where they begin at the first word. The slice
// is bound from an aligned place on, and begins `skip` bytes behind that. With BACK the bytes go to the slice, and
// bytes beside it in its first and last word stay. One thread writes one word.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params { bytes: u32, skip: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> source: array<u32>;
@group(0) @binding(2) var<storage, read_write> output: array<u32>;

// Words that hold this many bytes.
fn words_of(bytes: u32) -> u32 { return bytes / 4u + select(0u, 1u, bytes % 4u != 0u); }

#if BACK
// The lowest bytes of a word.
fn low_bytes(count: u32) -> u32 { return select((1u << (8u * (count & 3u))) - 1u, 4294967295u, count >= 4u); }
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn move_slice(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    let first = params.skip / 4u;
    let off = params.skip % 4u;
    // A shift by all 32 bits is not defined, hence in two steps.
#if BACK
    let words = words_of(off + params.bytes);
    if i >= words { return; }
    var word = 0u;
    if i < words_of(params.bytes) { word = source[i] << (8u * off); }
    if off > 0u && i > 0u { word |= (source[i - 1u] >> 1u) >> (31u - 8u * off); }
    let mask = low_bytes(off + params.bytes - 4u * i) & ~select(0u, low_bytes(off), i == 0u);
    output[first + i] = (output[first + i] & ~mask) | (word & mask);
#else
    if i >= words_of(params.bytes) { return; }
    var word = source[first + i] >> (8u * off);
    if off > 0u && i + 1u < words_of(off + params.bytes) {
        word |= (source[first + i + 1u] << 1u) << (31u - 8u * off);
    }
    output[i] = word;
#endif
}
