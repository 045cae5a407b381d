// Walk `vec4`: one thread computes four words with one 16-byte load of each input, one workgroup WORKGROUP_SIZE of
// these in a row. The elements must fill a whole number of vec4; if the
// device counts them, the words of the last one are stored one by one.
// Requires `output` (an array of Word) and `compute(i)`, its vec4 i, of its importer.
#import workgroup/index
#import elementwise/extent
#if LIMITED
#import elementwise/word
#endif
const WORKGROUP_SIZE: u32 = 256u;
alias Word = vec4<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn elementwise_vec4(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + local;
    if (i < extent() / (4u * PACK)) { output[i] = compute(i); }
#if LIMITED
    else if (4u * PACK * i < extent()) {
        let x = compute(i);
        for (var k = 0u; 4u * i + k < word_count(); k++) { output[i][k] = merged(4u * i + k, output[i][k], x[k]); }
    }
#endif
}
