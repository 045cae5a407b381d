// Stable partition: the kept elements, in order, then the others, in order.
// Count, scan, scatter (Blelloch, Prefix Sums and Their Applications, 1990).
#import primitives/compact_scatter
#import primitives/compact_store

const OUTPUT_BINDING: u32 = 5u;
@group(0) @binding(OUTPUT_BINDING + 1u) var<storage, read> total: array<u32>;

fn emit(at: u32, bits: u32, rank: u32, kept: bool) {
#if HALVES
    store(rank, bits, kept);
    store(total[0] + at - rank, bits, !kept & (at < extent()));
#else
    store(select(total[0] + at - rank, rank, kept), bits, at < extent());
#endif
}
