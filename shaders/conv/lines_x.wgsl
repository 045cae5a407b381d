// A filter that is a product of lines: its line along x. One thread computes a group of four sums, stored as f32.
#import conv/lines_params
#import conv/lines_floats_in as source
#import conv/lines_along

const WORKGROUP_SIZE: u32 = 256u;

@group(0) @binding(2) var<storage, read_write> sums: array<vec4<f32>>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn lines_x(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i >= params.tiles { return; }
    sums[i] = along(i / params.groups * params.w, i % params.groups * 4u);
}
