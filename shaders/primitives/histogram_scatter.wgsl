// First half of a partitioned histogram: moves the slots of elements, 16 bits each, to the bucket of their bin, in any
// order. One workgroup ranks a tile of 4 * VEC4S elements a thread in its memory, reserves room in each bucket, and
// writes the slots of a bucket side by side; a half left over is EMPTY.
// Requires VEC4S, a multiple of PACK, and at least BUCKETS threads.
#import primitives/histogram_bins
#import primitives/histogram_buckets
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const VEC4S: u32 = 4u;
const TILE: u32 = WORKGROUP_SIZE * 4u * VEC4S;
const EMPTY: u32 = 0xffffu;

const ENDS_BINDING: u32 = 4u;
#if VECTORS
// Where each bucket ends so far.
@group(0) @binding(ENDS_BINDING) var<storage, read_write> ends: array<atomic<u32>>;
@group(0) @binding(ENDS_BINDING + 1u) var<storage, read_write> words: array<u32>;

var<workgroup> wg_counts: array<atomic<u32>, BUCKETS>;
var<workgroup> wg_sizes: array<u32, BUCKETS>;
// Words of the tile before each bucket, and what leads from a word of the tile to its place in device memory.
var<workgroup> wg_before: array<u32, BUCKETS>;
var<workgroup> wg_leads: array<u32, BUCKETS>;
var<workgroup> wg_words: u32;
// Bucket and slot of each element, by bucket.
var<workgroup> wg_sorted: array<u32, TILE + BUCKETS>;

fn bins_of(tile: u32, q: u32, lane: u32) -> vec4<u32> {
    let at = (tile * (VEC4S / PACK) + q / PACK) * WORKGROUP_SIZE + lane;
    if at >= vectors_there() { return vec4<u32>(NOT_COUNTED); }
    let v = vectors[at];
    let i = q % PACK;
    return vec4<u32>(bin_of(decode(v.x, i)), bin_of(decode(v.y, i)), bin_of(decode(v.z, i)), bin_of(decode(v.w, i)));
}

fn rank_one(bin: u32) -> u32 {
    if bin == NOT_COUNTED { return 0u; }
    return atomicAdd(&wg_counts[bucket_of(bin)], 1u);
}

fn rank_four(bins: vec4<u32>) -> vec4<u32> {
    let buckets = vec4<u32>(bucket_of(bins.x), bucket_of(bins.y), bucket_of(bins.z), bucket_of(bins.w));
    if all(buckets == buckets.xxxx) & all(bins != vec4<u32>(NOT_COUNTED)) {
        return atomicAdd(&wg_counts[buckets.x], 4u) + vec4<u32>(0u, 1u, 2u, 3u);
    }
    let x = rank_one(bins.x);
    let y = rank_one(bins.y);
    let z = rank_one(bins.z);
    return vec4<u32>(x, y, z, rank_one(bins.w));
}

fn put(bin: u32, rank: u32) {
    if bin != NOT_COUNTED {
        let bucket = bucket_of(bin);
        wg_sorted[2u * wg_before[bucket] + rank] = (bucket << 16u) | slot_in_bucket(bin);
    }
}

fn put_four(bins: vec4<u32>, ranks: vec4<u32>) {
    put(bins.x, ranks.x);
    put(bins.y, ranks.y);
    put(bins.z, ranks.z);
    put(bins.w, ranks.w);
}
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn histogram_scatter(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = workgroup_index(group);
    if tile >= params.parts { return; }
    if tile == 0u {
        let there = extent();
        // What fills no vec4.
        for (var at = vectors_there() * 4u * PACK + lane; at < there; at += WORKGROUP_SIZE) {
            let bin = bin_of(element(at));
            if bin != NOT_COUNTED { atomicAdd(&counts[bin], 1u); }
        }
    }
#if VECTORS
    if lane < BUCKETS { atomicStore(&wg_counts[lane], 0u); }
    workgroupBarrier();
#for i in VEC4S
    let bins{i} = bins_of(tile, {i}u, lane);
#end
#for i in VEC4S
    let ranks{i} = rank_four(bins{i});
#end
    workgroupBarrier();
    var count = 0u;
    var size = 0u;
    var end = 0u;
    if lane < BUCKETS {
        count = atomicLoad(&wg_counts[lane]);
        size = (count + 1u) / 2u;
        wg_sizes[lane] = size;
        if size > 0u { end = atomicAdd(&ends[lane], size); }
    }
    workgroupBarrier();
    if lane < BUCKETS {
        var before = 0u;
        for (var i = 0u; i < lane; i++) { before += wg_sizes[i]; }
        wg_before[lane] = before;
        wg_leads[lane] = end - before;
        if count % 2u == 1u { wg_sorted[2u * before + count] = (lane << 16u) | EMPTY; }
        if lane == BUCKETS - 1u { wg_words = before + size; }
    }
    workgroupBarrier();
#for i in VEC4S
    put_four(bins{i}, ranks{i});
#end
    workgroupBarrier();
    for (var i = lane; i < wg_words; i += WORKGROUP_SIZE) {
        let first = wg_sorted[2u * i];
        words[wg_leads[first >> 16u] + i] = (first & 0xffffu) | (wg_sorted[2u * i + 1u] << 16u);
    }
#endif
}
