// The workgroups of a dispatch over as many entries as `count` says, at most `held` behind `before` others, folded as
// workgroup/index unfolds them: for an indirect dispatch. One invocation.
#import workgroup/fold

struct Params {
    before: u32,
    held: u32,
    width: u32, // items of an entry
    skip: u32,  // items before those of the first entry
    each: u32,  // items of a workgroup; not 0
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> count: array<u32>;
@group(0) @binding(2) var<storage, read_write> workgroups: array<u32>;

@compute @workgroup_size(1)
fn fold_count() {
    let entries = min(params.held, max(count[0], params.before) - params.before);
    let items = select(params.skip + entries * params.width, 0u, entries == 0u);
    let folded = folded_workgroups(items, params.each);
    workgroups[0] = folded.x;
    workgroups[1] = folded.y;
    workgroups[2] = folded.z;
}
