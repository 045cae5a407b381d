// Walk `grid-stride`: at most WORKGROUPS workgroups; one thread computes every word whose index differs from its own by
// a multiple of WORKGROUPS * WORKGROUP_SIZE.
// Requires `output` (an array of Word) and `compute(i)`, its word i, of its importer.
#import workgroup/index
#import elementwise/word
const WORKGROUP_SIZE: u32 = 256u;
const WORKGROUPS: u32 = 1024u;
alias Word = u32;

@compute @workgroup_size(WORKGROUP_SIZE)
fn elementwise_grid_stride(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let first = workgroup_index(group) * WORKGROUP_SIZE + local;
    for (var i = first; i < word_count(); i += WORKGROUPS * WORKGROUP_SIZE) { store_word(i, compute(i)); }
}
