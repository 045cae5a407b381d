// The workgroups of a dispatch over as many items as `count` says, and at most `most`, folded as workgroup/index
// unfolds them: for an indirect dispatch. One invocation.
#import workgroup/index

struct Params {
    items: u32, // of a workgroup; not 0
    most: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> count: array<u32>;
@group(0) @binding(2) var<storage, read_write> workgroups: array<u32>;

fn whole(n: u32, unit: u32) -> u32 { return n / unit + u32(n % unit != 0u); }

@compute @workgroup_size(1)
fn fold_count() {
    let all = whole(min(count[0], params.most), max(params.items, 1u));
    let rows = whole(all, FOLD);
    workgroups[0] = min(all, FOLD);
    workgroups[1] = min(rows, FOLD);
    workgroups[2] = whole(rows, FOLD);
}
