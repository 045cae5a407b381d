// The last workgroup writes beyond the end.
@group(0) @binding(0) var<storage, read_write> data: array<f32>;

@compute @workgroup_size(64)
fn double(@builtin(global_invocation_id) id: vec3<u32>) {
#if BROKEN
    data[id.x] = 2.0 * data[id.x]; // <- BROKEN
#else
    if id.x < arrayLength(&data) {
        data[id.x] = 2.0 * data[id.x];
    }
#endif
}
