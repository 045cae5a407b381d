// All wait, and those beyond the end do nothing else.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

var<workgroup> wg_words: array<u32, 64>;

@compute @workgroup_size(64)
fn swap(@builtin(local_invocation_index) lane: u32) {
    if lane < arrayLength(&data) {
        wg_words[lane] = data[lane];
    }
    workgroupBarrier();
    if lane < arrayLength(&data) {
        data[lane] = wg_words[arrayLength(&data) - 1u - lane];
    }
}
