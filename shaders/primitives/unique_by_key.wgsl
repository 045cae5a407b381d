// Keeps the first key of each run of equal keys, and its value.
#import primitives/compact_scatter
#import primitives/compact_store

const OUTPUT_BINDING: u32 = 5u;
@group(0) @binding(OUTPUT_BINDING + 1u) var<storage, read_write> values_out: array<u32>;
@group(0) @binding(OUTPUT_BINDING + 2u) var<storage, read> values: array<u32>;

fn emit(at: u32, bits: u32, rank: u32, kept: bool) {
    store(rank, bits, kept);
    if kept { values_out[rank] = values[at]; }
}
