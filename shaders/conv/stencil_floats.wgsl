// Elements of f32: one alone, or with VECTORS, where rows are multiples of 4 long, by vec4s.
#if VECTORS
alias Group = vec4<f32>;
const PACK: u32 = 4u;
#else
alias Group = f32;
const PACK: u32 = 1u;
#endif

@group(0) @binding(1) var<storage, read> input: array<Group>;
@group(0) @binding(2) var<storage, read_write> output: array<Group>;

fn load(i: u32) -> Group { return input[i]; }

// Stores the group that begins at `p`, which lies inside.
fn put_group(p: vec3<u32>, group: Group) {
    output[(p.z * params.h + p.y) * params.groups + p.x / PACK] = group;
}
