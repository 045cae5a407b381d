// The workgroups of a dispatch over as many items as `count` says, and at most `most`, folded as workgroup/index
// unfolds them: for an indirect dispatch. One invocation.
#import workgroup/fold

struct Params {
    items: u32, // of a workgroup; not 0
    most: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> count: array<u32>;
@group(0) @binding(2) var<storage, read_write> workgroups: array<u32>;

@compute @workgroup_size(1)
fn fold_count() {
    let folded = folded_workgroups(min(count[0], params.most), params.items);
    workgroups[0] = folded.x;
    workgroups[1] = folded.y;
    workgroups[2] = folded.z;
}
