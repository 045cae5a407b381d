// The last workgroup goes beyond the end.
@group(0) @binding(0) var<storage, read_write> data: array<f32>;

@compute @workgroup_size(64)
fn double(@builtin(global_invocation_id) id: vec3<u32>) {
    data[id.x] = 2.0 * data[id.x]; // <- found
}
