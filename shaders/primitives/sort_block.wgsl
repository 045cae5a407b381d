// The chunk of the keys that a dispatch of the variant `counting` covers, and its blocks.
#import workgroup/index

struct Params {
    n: u32,           // keys in the chunk
    first: u32,       // keys before the chunk
    block_len: u32,   // keys of a block
    blocks: u32,      // blocks of the chunk
    first_block: u32, // blocks before the chunk
    all_blocks: u32,
    shift: u32,       // lowest bit of the digit
    mask: u32,        // its bits
    window: u32,      // keys of the output before those that the dispatch may write
    window_len: u32,
    items: u32,       // ITEMS_PER_THREAD again, for loops that are not to be unrolled
}
@group(0) @binding(0) var<uniform> params: Params;

// Begin and end of the keys of a block, in the chunk.
fn block_range(block: u32) -> vec2<u32> {
#if COUNTED
    let n = min(params.n, max(count[0], params.first) - params.first);
#else
    let n = params.n;
#endif
    let begin = min(block * params.block_len, n);
    return vec2<u32>(begin, begin + min(params.block_len, n - begin));
}
