// Values passed through storage memory need storageBarrier.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(64)
fn turn(@builtin(local_invocation_index) lane: u32) {
    data[lane] = lane; // <- other
#if BROKEN
    workgroupBarrier();
#else
    storageBarrier();
#endif
    let other = data[63u - lane]; // <- BROKEN
    storageBarrier();
    data[lane] = other;
}
