// Measures copy bandwidth: each invocation copies four vec4, a workgroup a contiguous 16 KiB.
#import workgroup/index

struct Params { vectors: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> output: array<vec4<u32>>;

@compute @workgroup_size(256)
fn probe_copy(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let first = workgroup_index(group) * 1024u + lane;
    for (var i = 0u; i < 4u; i++) {
        let at = first + i * 256u;
        if at < params.vectors { output[at] = input[at]; }
    }
}
