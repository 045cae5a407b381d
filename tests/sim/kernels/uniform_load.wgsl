// Each thread loads a different place with workgroupUniformLoad.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

var<workgroup> wg_words: array<u32, 64>;

@compute @workgroup_size(64)
fn load(@builtin(local_invocation_index) lane: u32) {
    wg_words[lane] = lane;
#if BROKEN
    data[lane] = workgroupUniformLoad(&wg_words[lane]); // <- BROKEN
#else
    data[lane] = workgroupUniformLoad(&wg_words[7]);
#endif
}
