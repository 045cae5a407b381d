// What is handed on in storage memory needs the barrier of storage memory.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(64)
fn turn(@builtin(local_invocation_index) lane: u32) {
    data[lane] = lane; // <- other
    workgroupBarrier();
    let other = data[63u - lane]; // <- found
    storageBarrier();
    data[lane] = other;
}
