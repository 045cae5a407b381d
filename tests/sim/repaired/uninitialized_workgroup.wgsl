// All of the workgroup writes.
@group(0) @binding(0) var<storage, read_write> output: array<u32>;

var<workgroup> wg_words: array<u32, 64>;

@compute @workgroup_size(64)
fn fill(@builtin(local_invocation_index) lane: u32) {
    wg_words[lane] = select(0u, lane, lane < 32u);
    workgroupBarrier();
    output[lane] = wg_words[63u - lane];
}
