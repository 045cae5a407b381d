// A barrier that half of the threads reach.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

var<workgroup> wg_words: array<u32, 64>;

@compute @workgroup_size(64)
fn swap(@builtin(local_invocation_index) lane: u32) {
    wg_words[lane] = data[lane];
#if BROKEN
    if data[lane] < 4u {
        workgroupBarrier(); // <- BROKEN
    }
#endif
    workgroupBarrier();
    data[lane] = wg_words[63u - lane];
}
