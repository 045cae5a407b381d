// A vector made word by word from another: a thread makes WORDS words, WORKGROUP_SIZE apart, of PACK elements each. A
// word that the vector fills only in part keeps the rest. The importer declares `fn made(i: u32) -> u32`, the bits of
// element i of the output.
#import dispatch/extent
#import element/f32 as element
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const WORDS: u32 = 4u;
const BITS: u32 = 32u / PACK;

struct Params { n: u32, by: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<u32>;
@group(0) @binding(2) var<storage, read_write> output: array<u32>;

#put extent(params.n, 0u)

fn bits_of(i: u32) -> u32 { return extractBits(input[i / PACK], i % PACK * BITS, BITS); }

fn make_word(word: u32) {
    let n = extent();
    if word >= (n + PACK - 1u) / PACK { return; }
#if PACKED
    let first = word * PACK;
    let count = min(PACK, n - first);
    var result = 0u;
    if count < PACK { result = output[word]; }
    for (var k = 0u; k < count; k++) { result = insertBits(result, made(first + k), k * BITS, BITS); }
    output[word] = result;
#else
    output[word] = made(word);
#endif
}

fn make_words(group: u32, lane: u32) {
    let first = group * (WORKGROUP_SIZE * WORDS) + lane;
#if !PACKED
    if first + (WORDS - 1u) * WORKGROUP_SIZE < extent() {
        // All reads are in flight together.
#for k in WORDS
        let word_{k} = made(first + {k}u * WORKGROUP_SIZE);
#end
#for k in WORDS
        output[first + {k}u * WORKGROUP_SIZE] = word_{k};
#end
        return;
    }
#endif
#for k in WORDS
    make_word(first + {k}u * WORKGROUP_SIZE);
#end
}
