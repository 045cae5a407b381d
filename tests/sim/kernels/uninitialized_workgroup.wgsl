// Half of the workgroup writes what all of it reads.
@group(0) @binding(0) var<storage, read_write> output: array<u32>;

var<workgroup> wg_words: array<u32, 64>;

@compute @workgroup_size(64)
fn fill(@builtin(local_invocation_index) lane: u32) {
#if BROKEN
    if lane < 32u {
        wg_words[lane] = lane;
    }
#else
    wg_words[lane] = select(0u, lane, lane < 32u);
#endif
    workgroupBarrier();
    output[lane] = wg_words[63u - lane]; // <- BROKEN
}
