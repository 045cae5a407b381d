// The parameters of every kernel of the transposition: `batch` matrices of m x n, one after the other. Elements of
// 4 and 8 bytes are words of their own (Word); PACK smaller ones share a word of 32 bits.
#import workgroup/index

const PACK: u32 = 1u;
alias Word = u32;

struct Params {
    batch: u32, m: u32, n: u32,
    tiles_m: u32, // tiles down the input
    tiles_n: u32, // tiles across it
}
@group(0) @binding(0) var<uniform> params: Params;
