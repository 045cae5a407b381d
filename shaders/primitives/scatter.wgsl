// Stores rows by index: into[indices[i]] = x[i]. A thread copies four adjacent words (VECTORS) or one. Of several rows
// with one index the last is stored: the one that owns it, unless indices are DISTINCT.
#import dispatch/extent
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params { count: u32, width: u32, rows: u32 }
@group(0) @binding(0) var<uniform> params: Params;
#put extent(params.count, 0u)
#if VECTORS
alias Item = vec4<u32>;
#else
alias Item = u32;
#endif
@group(0) @binding(1) var<storage, read> x: array<Item>;
@group(0) @binding(2) var<storage, read> indices: array<u32>;
@group(0) @binding(3) var<storage, read_write> into: array<Item>;
#if !DISTINCT
@group(0) @binding(4) var<storage, read> owners: array<u32>;
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn scatter(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i >= extent() * params.width { return; }
    let row = i / params.width;
    let number = indices[row];
    if number >= params.rows { return; }
#if !DISTINCT
    if owners[number] != row + 1u { return; }
#endif
    into[number * params.width + i % params.width] = x[i];
}
