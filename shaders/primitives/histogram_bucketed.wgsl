// Second half of a partitioned histogram: one workgroup counts `chunk` words of slots, all of one bucket, in its
// memory. It finds its bucket from the bucket sizes, which only the device knows.
// Requires LOADS * WORKGROUP_SIZE * 8 <= FULL, and at least BUCKETS threads.
#import primitives/histogram_buckets
#import primitives/histogram_counters
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const WORDS: u32 = 4096u;
const LOADS: u32 = 4u;
const STEP: u32 = LOADS * WORKGROUP_SIZE;
// Steps from barrier to barrier.
const WINDOW: u32 = FULL / (STEP * 8u);

struct Params {
    chunk: u32, // a multiple of 4 * STEP
    steps: u32, // as many as a chunk has
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> counts: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> starts: array<u32>;
@group(0) @binding(3) var<storage, read> ends: array<u32>;
@group(0) @binding(4) var<storage, read> slots: array<vec4<u32>>;

var<workgroup> wg_chunks: array<u32, BUCKETS>;
// Words of the workgroup, and their bucket.
var<workgroup> wg_first: u32;
var<workgroup> wg_end: u32;
var<workgroup> wg_bucket: u32;

fn bin_at(slot: u32) -> u32 { return bin_in_bucket(wg_bucket, slot); }

// What lies beyond the end belongs to no slot.
fn load(at: u32, end: u32) -> vec4<u32> {
    let none = vec4<u32>(0xffffffffu);
    if 4u * at >= end { return none; }
    return select(none, slots[at], 4u * at + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(end));
}

fn count_vector(v: vec4<u32>) {
    if all(v == v.xxxx) & (v.x >> 16u == (v.x & 0xffffu)) {
        let slot = v.x & 0xffffu;
        settle(slot, add(slot, 8u));
    } else {
        count_slots(v & vec4<u32>(0xffffu));
        count_slots(v >> vec4<u32>(16u));
    }
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn histogram_bucketed(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let job = workgroup_index(group);
    var size = 0u;
    if lane < BUCKETS {
        size = ends[lane] - starts[lane];
        wg_chunks[lane] = (size + params.chunk - 1u) / params.chunk;
    }
    if lane == 0u {
        wg_first = 0u;
        wg_end = 0u;
        wg_bucket = 0u;
    }
    clear_counters(lane);
    workgroupBarrier();
    if lane < BUCKETS {
        var before = 0u;
        for (var i = 0u; i < lane; i++) { before += wg_chunks[i]; }
        if job >= before && job - before < wg_chunks[lane] {
            let begin = (job - before) * params.chunk;
            wg_first = starts[lane] + begin;
            wg_end = starts[lane] + min(begin + params.chunk, size);
            wg_bucket = lane;
        }
    }
    workgroupBarrier();
    let end = wg_end;
    var at = wg_first / 4u + lane;
    for (var step = 1u; step <= params.steps; step++) {
#for i in LOADS
        let v{i} = load(at + {i}u * WORKGROUP_SIZE, end);
#end
#for i in LOADS
        count_vector(v{i});
#end
        at += STEP;
        if step % WINDOW == 0u { workgroupBarrier(); }
    }
    workgroupBarrier();
    flush_counters(lane);
}
