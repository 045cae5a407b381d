// Sets the output to 0, where there are no keys.
// A thread writes four elements.
#import attention/attention_params
#import attention/attention_output

const WORKGROUP_SIZE: u32 = 256u;

@compute @workgroup_size(WORKGROUP_SIZE)
fn attention_zero(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let index = workgroup_index(id) * WORKGROUP_SIZE + local;
    if index < params.rows * VALUE_VEC4S {
        store_vec4(params.first_row + index / VALUE_VEC4S, index % VALUE_VEC4S, vec4<f32>());
    }
}
