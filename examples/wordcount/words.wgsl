// Splits a text into words. fold: lower-cases bytes of words and zeroes others. mark: one bit per byte where a word
// begins. list: the marks as positions. hash: a number per word. compare: whether a word differs from the one before it
// in hash order. One thread handles four bytes (fold), 32 bytes (mark, list) or a word (hash, compare). The text is
// padded with at least four zeros to groups of 32 bytes.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
// Maximum bytes compared. Longer words always differ here, and the host merges them.
const LONGEST: u32 = 1024u;

struct Params { n: u32 } // invocations with work
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> text: array<u32>;
@group(0) @binding(2) var<storage, read_write> folded_out: array<u32>;
@group(0) @binding(3) var<storage, read> folded: array<u32>;
@group(0) @binding(4) var<storage, read_write> masks_out: array<u32>;
@group(0) @binding(5) var<storage, read_write> counts_out: array<u32>;
@group(0) @binding(6) var<storage, read> masks: array<u32>;
@group(0) @binding(7) var<storage, read> ends: array<u32>; // number of words up to the end of each group of 32 bytes
@group(0) @binding(8) var<storage, read_write> starts_out: array<u32>;
@group(0) @binding(9) var<storage, read> starts: array<u32>;
@group(0) @binding(10) var<storage, read_write> hashes_out: array<u32>;
@group(0) @binding(11) var<storage, read> hashes: array<u32>;
@group(0) @binding(12) var<storage, read_write> heads_out: array<u32>;
@group(0) @binding(13) var<storage, read_write> ones_out: array<u32>;

fn invocation(id: vec3<u32>, lane: u32) -> u32 { return workgroup_index(id) * WORKGROUP_SIZE + lane; }

fn within(x: u32, first: u32, last: u32) -> bool { return x >= first && x <= last; }

// Length of the separator at the lowest of these four bytes; 0 if it belongs to a word.
fn separator(bytes: u32) -> u32 {
    let a = bytes & 0xffu;
    let b = (bytes >> 8u) & 0xffu;
    if a < 0x80u {
        let lower = a | 0x20u;
        return select(1u, 0u, within(lower, 0x61u, 0x7au) || within(a, 0x30u, 0x39u));
    }
    if !within(b, 0x80u, 0xbfu) {
        return 0u;
    }
    if a == 0xc2u {
        return 2u;
    }
    let third = within((bytes >> 16u) & 0xffu, 0x80u, 0xbfu);
    let wide = (a == 0xe2u && b <= 0x81u) || (a == 0xe3u && b == 0x80u);
    return select(0u, 3u, third && wide);
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn fold(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = invocation(id, lane);
    if i >= params.n {
        return;
    }
    let here = text[i];
    var before = 0u;
    if i > 0u {
        before = text[i - 1u];
    }
    var after = 0u;
    if i + 1u < params.n {
        after = text[i + 1u];
    }
    // A window of eight bytes that begins two bytes before ours: separators have up to three bytes.
    var low = (before >> 16u) | (here << 16u);
    var high = (here >> 16u) | (after << 16u);
    var left = 0u; // remaining bytes of the current separator
    var word = 0u;
    for (var k = 0u; k < 6u; k++) {
        left = max(max(left, 1u) - 1u, separator(low));
        let byte = low & 0xffu;
        let lower = select(byte, byte | 0x20u, within(byte, 0x41u, 0x5au));
        // Drop the two bytes before ours.
        word = (word >> 8u) | (select(lower, 0u, left > 0u) << 24u);
        low = (low >> 8u) | (high << 24u);
        high = high >> 8u;
    }
    folded_out[i] = word;
}

// 0x80 in each zero byte; the sum never carries into another byte.
fn zeros(word: u32) -> u32 {
    return ~(((word & 0x7f7f7f7fu) + 0x7f7f7f7fu) | word | 0x7f7f7f7fu);
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn mark(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let group = invocation(id, lane);
    if group >= params.n {
        return;
    }
    var gaps = 0u; // bit i: byte i belongs to no word
    for (var k = 0u; k < 8u; k++) {
        gaps |= (((zeros(folded[8u * group + k]) >> 7u) * 0x01020408u) >> 24u) << (4u * k);
    }
    var gap_before = 1u;
    if group > 0u && folded[8u * group - 1u] >= 0x01000000u {
        gap_before = 0u;
    }
    let begins = ~gaps & ((gaps << 1u) | gap_before);
    masks_out[group] = begins;
    counts_out[group] = countOneBits(begins);
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn list(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let group = invocation(id, lane);
    if group >= params.n {
        return;
    }
    var begins = masks[group];
    var at = ends[group] - countOneBits(begins);
    while begins != 0u {
        starts_out[at] = 32u * group + firstTrailingBit(begins);
        begins &= begins - 1u;
        at++;
    }
}

// Four bytes of a word from byte `at`; 0 after its end.
fn four(at: u32) -> u32 {
    let shift = 8u * (at % 4u);
    var bytes = folded[at / 4u];
    if shift > 0u {
        bytes = (bytes >> shift) | (folded[at / 4u + 1u] << (32u - shift));
    }
    let none = zeros(bytes);
    if none != 0u {
        bytes &= (1u << (firstTrailingBit(none) - 7u)) - 1u;
    }
    return bytes;
}

// MurmurHash3 of 32 bits (Austin Appleby, public domain).
@compute @workgroup_size(WORKGROUP_SIZE)
fn hash(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = invocation(id, lane);
    if i >= params.n {
        return;
    }
    var h = 0u;
    for (var k = 0u; k < LONGEST; k += 4u) {
        let bytes = four(starts[i] + k);
        var x = bytes * 0xcc9e2d51u;
        x = ((x << 15u) | (x >> 17u)) * 0x1b873593u;
        h ^= x;
        h = ((h << 13u) | (h >> 19u)) * 5u + 0xe6546b64u;
        if bytes < 0x01000000u {
            break;
        }
    }
    h = (h ^ (h >> 16u)) * 0x85ebca6bu;
    h = (h ^ (h >> 13u)) * 0xc2b2ae35u;
    hashes_out[i] = h ^ (h >> 16u);
}

fn same(a: u32, b: u32) -> bool {
    for (var k = 0u; k < LONGEST; k += 4u) {
        let bytes = four(a + k);
        if bytes != four(b + k) {
            return false;
        }
        if bytes < 0x01000000u {
            return true;
        }
    }
    return false;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn compare(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = invocation(id, lane);
    if i >= params.n {
        return;
    }
    var head = 1u;
    if i > 0u && hashes[i] == hashes[i - 1u] && same(starts[i], starts[i - 1u]) {
        head = 0u;
    }
    heads_out[i] = head;
    ones_out[i] = 1u; // each word counts one
}
