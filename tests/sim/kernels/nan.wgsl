// The square root of a number that rounding made negative.
@group(0) @binding(0) var<storage, read_write> data: array<f32>;

@compute @workgroup_size(32)
fn deviation(@builtin(local_invocation_index) lane: u32) {
#if BROKEN
    data[lane] = sqrt(data[lane]); // <- BROKEN
#else
    data[lane] = sqrt(max(0.0, data[lane]));
#endif
}
