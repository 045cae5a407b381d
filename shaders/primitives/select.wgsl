// Stable selection: the kept elements, in order, at the front; with POSITIONS where they stood, with PLACES both.
#import primitives/compact_scatter

const OUTPUT_BINDING: u32 = 5u;

#if POSITIONS
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<u32>;

fn emit(at: u32, bits: u32, rank: u32, kept: bool) {
    if kept { output[rank] = at; }
}
#else
#import primitives/compact_store

#if PLACES
@group(0) @binding(OUTPUT_BINDING + 1u) var<storage, read_write> stood: array<u32>;
#endif

fn emit(at: u32, bits: u32, rank: u32, kept: bool) {
    store(rank, bits, kept);
#if PLACES
    if kept { stood[rank] = at; }
#endif
}
#endif
