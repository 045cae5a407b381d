// A filter that is a product of lines: its line along y or, with DEPTH, along z, of sums that an earlier kernel
// wrote. One thread computes four groups along that axis.
#import conv/lines_params
#import conv/lines_floats_out as target
#import conv/finish_plain as finish
#import conv/lines_across

const WORKGROUP_SIZE: u32 = 256u;

alias Group = vec4<f32>;

@group(0) @binding(1) var<storage, read> sums: array<vec4<f32>>;

// place: where the axis begins, and the coordinate of the first sum.
fn value(place: vec2<u32>, j: u32) -> vec4<f32> {
    let c = i32(place.y + j) - i32(params.radius_y);
    let group = sums[place.x + fold(c, params.extent) * params.pitch];
    return select(vec4<f32>(), group, counts(c, params.extent));
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn lines_yz(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i >= params.tiles { return; }
    let x = i % params.groups;
    let rest = i / params.groups;
#if DEPTH
    let first = rest / params.h * 4u;
    let p = vec3(x * 4u, rest % params.h, first);
    let place = vec2(p.y * params.groups + x, first);
    let apart = vec3(0u, 0u, 1u);
#else
    let blocks = (params.h - 1u) / 4u + 1u;
    let first = rest % blocks * 4u;
    let p = vec3(x * 4u, first, rest / blocks);
    let place = vec2(p.z * params.h * params.groups + x, first);
    let apart = vec3(0u, 1u, 0u);
#endif
    put_across(p, apart, across(place, 0u), params.extent - first);
}
