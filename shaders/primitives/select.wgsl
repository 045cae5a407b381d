// Stable selection: the kept elements, in order, close together.
#import primitives/compact_scatter

const OUTPUT_BINDING: u32 = 5u;
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<u32>;

fn emit(at: u32, bits: u32, rank: u32, kept: bool) {
    if kept {
        output[rank] = bits;
    }
}
