// Walk `plain`: one thread computes one word, one workgroup WORKGROUP_SIZE words in a row.
// Requires `output` (an array of Word) and `compute(i)`, its word i, of its importer.
#import workgroup/index
#import elementwise/word
const WORKGROUP_SIZE: u32 = 256u;
alias Word = u32;

@compute @workgroup_size(WORKGROUP_SIZE)
fn elementwise_plain(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + local;
    if (i < word_count()) { store_word(i, compute(i)); }
}
