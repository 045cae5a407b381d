// Stable selection: the kept elements, in order, at the front.
#import primitives/compact_scatter
#import primitives/compact_store

const OUTPUT_BINDING: u32 = 5u;

fn emit(at: u32, bits: u32, rank: u32, kept: bool) { store(rank, bits, kept); }
