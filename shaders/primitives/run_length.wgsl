// The runs of equal neighbours: their value, and where they begin.
#import primitives/compact_scatter

const OUTPUT_BINDING: u32 = 5u;
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> values: array<u32>;
@group(0) @binding(OUTPUT_BINDING + 1u) var<storage, read_write> starts: array<u32>;

fn emit(at: u32, bits: u32, rank: u32, kept: bool) {
    if kept {
        values[rank] = bits;
        starts[rank] = at;
    }
}
