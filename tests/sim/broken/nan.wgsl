// The square root of what rounding has made negative.
@group(0) @binding(0) var<storage, read_write> data: array<f32>;

@compute @workgroup_size(32)
fn deviation(@builtin(local_invocation_index) lane: u32) {
    data[lane] = sqrt(data[lane]); // <- found
}
