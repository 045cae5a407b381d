// Finds the starts of the buckets of a partitioned histogram, in words of two slots: one after another, with room for
// one empty half for each tile. One workgroup; one thread for each bucket.
#import primitives/histogram_buckets

struct Params { tiles: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> totals: array<u32>;
@group(0) @binding(2) var<storage, read_write> starts: array<u32>;
@group(0) @binding(3) var<storage, read_write> ends: array<u32>;

var<workgroup> wg_sizes: array<u32, BUCKETS>;

@compute @workgroup_size(BUCKETS)
fn histogram_starts(@builtin(local_invocation_index) lane: u32) {
    wg_sizes[lane] = (totals[lane] + params.tiles + 7u) / 8u * 4u;
    workgroupBarrier();
    var before = 0u;
    for (var i = 0u; i < lane; i++) { before += wg_sizes[i]; }
    starts[lane] = before;
    ends[lane] = before;
}
