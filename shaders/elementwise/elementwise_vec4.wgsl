// Walk `vec4`: one thread computes four words with one 16-byte load of each input, one workgroup WORKGROUP_SIZE of
// these in a row. The elements must fill a whole number of vec4.
// Requires `output` (an array of Word) and `compute(i)`, its vec4 i, of its importer.
#import workgroup/index
const WORKGROUP_SIZE: u32 = 256u;
alias Word = vec4<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn elementwise_vec4(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + local;
    if (i < params.n / (4u * PACK)) { output[i] = compute(i); }
}
