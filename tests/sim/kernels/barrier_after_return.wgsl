// Threads beyond the end return before a barrier.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

var<workgroup> wg_words: array<u32, 64>;

@compute @workgroup_size(64)
fn swap(@builtin(local_invocation_index) lane: u32) {
#if BROKEN
    if lane >= arrayLength(&data) {
        return;
    }
    wg_words[lane] = data[lane];
    workgroupBarrier(); // <- BROKEN
    data[lane] = wg_words[arrayLength(&data) - 1u - lane];
#else
    if lane < arrayLength(&data) {
        wg_words[lane] = data[lane];
    }
    workgroupBarrier();
    if lane < arrayLength(&data) {
        data[lane] = wg_words[arrayLength(&data) - 1u - lane];
    }
#endif
}
