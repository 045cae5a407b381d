// A histogram of eight bins for values up to eight.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(1)
fn count() {
    var bins = array<u32, 8>();
    for (var i = 0u; i < arrayLength(&data); i++) {
#if BROKEN
        bins[data[i] % 9u] += 1u; // <- BROKEN
#else
        bins[data[i] % 8u] += 1u;
#endif
    }
    data[0] = bins[0];
}
