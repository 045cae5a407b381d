// Combines elements by index in order: `indices` are sorted, and `places` says where their rows are in x. The thread of
// the first row of a run and of a column combines the elements of the run, at most `steps` of them from `skip` on.
#import primitives/scatter_elements
@group(0) @binding(4) var<storage, read> places: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn scatter_sorted(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i >= extent() * params.width { return; }
    let first = i / params.width;
    let column = i % params.width;
    let number = indices[first];
    if number >= params.rows || (first > 0u && indices[max(first, 1u) - 1u] == number) { return; }
    let at = number * params.width + column;
    var result = extractBits(u32(atomicLoad(&into[at / PACK])), at % PACK * BITS, BITS);
    let left = extent() - first;
    if params.skip >= left { return; }
    let end = first + params.skip + min(params.steps, left - params.skip);
    for (var p = first + params.skip; p < end && indices[p] == number; p++) {
        result = combined(result, element(places[p] * params.width + column));
    }
    update(at, result);
}
