// Storage memory between barriers of its own.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(64)
fn turn(@builtin(local_invocation_index) lane: u32) {
    data[lane] = lane;
    storageBarrier();
    let other = data[63u - lane];
    storageBarrier();
    data[lane] = other;
}
