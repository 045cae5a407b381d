// Combines elements by index: into[indices[i], j] = into[indices[i], j] + x[i, j], or minimum, maximum or x itself, by
// atomics. A thread takes one element of x. Of several rows to SET with one index the one that owns it is stored.
#import primitives/scatter_elements
#if SET && !DISTINCT
@group(0) @binding(4) var<storage, read> owners: array<u32>;
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn scatter_atomic(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i >= extent() * params.width { return; }
    let row = i / params.width;
    let number = indices[row];
    if number >= params.rows { return; }
#if SET && !DISTINCT
    if owners[number] != row + 1u { return; }
#endif
    let at = number * params.width + i % params.width;
#if NATIVE
#if ADD
    atomicAdd(&into[at], Cell(x[i]));
#endif
#if MIN
    atomicMin(&into[at], Cell(x[i]));
#endif
#if MAX
    atomicMax(&into[at], Cell(x[i]));
#endif
#else
    update(at, element(i));
#endif
}
