// Histogram of more bins than workgroup memory holds as words: counters of 16 bits. One workgroup counts SLOTS of the
// bins in its part of the input. Workgroups for the other bins of a part run side by side, so a cache serves all but
// one of them.
// Requires LOADS * WORKGROUP_SIZE * 4 * PACK <= FULL.
#import primitives/histogram_bins
#import primitives/histogram_counters
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const WORDS: u32 = 4096u;
// vec4s that a thread has in flight.
const LOADS: u32 = 4u;
const STEP: u32 = LOADS * WORKGROUP_SIZE;
// Steps from barrier to barrier.
const WINDOW: u32 = FULL / (STEP * 4u * PACK);

var<private> first_bin: u32;

fn bin_at(slot: u32) -> u32 { return first_bin + slot; }

#if VECTORS
fn count_vector(v: vec4<u32>) {
    for (var i = 0u; i < PACK; i++) {
        let bins = vec4<u32>(
            bin_of(decode(v.x, i)), bin_of(decode(v.y, i)), bin_of(decode(v.z, i)), bin_of(decode(v.w, i)),
        );
        count_slots(bins - first_bin);
    }
}

fn walk(part: u32, lane: u32) {
    let vectors_end = vectors_there();
    var steps = 0u;
    for (var first = part * STEP; first < vectors_end; first += params.parts * STEP) {
        let at = first + lane;
        if first + STEP <= vectors_end {
#for i in LOADS
            let v{i} = vectors[at + {i}u * WORKGROUP_SIZE];
#end
#for i in LOADS
            count_vector(v{i});
#end
        } else {
            for (var i = at; i < vectors_end; i += WORKGROUP_SIZE) { count_vector(vectors[i]); }
        }
        steps += 1u;
        if steps == WINDOW {
            workgroupBarrier();
            steps = 0u;
        }
    }
}
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn histogram_packed(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let passes = (params.bins + SLOTS - 1u) / SLOTS;
    let tile = workgroup_index(group);
    let part = tile / passes;
    if part >= params.parts { return; }
    // Turned from part to part: a multiprocessor may get workgroups at equal distances, and not all of them are to be
    // of the pass that has the crowded bins.
    first_bin = (tile + part) % passes * SLOTS;
    clear_counters(lane);
    workgroupBarrier();
    if part == 0u {
        let there = extent();
        // What fills no vec4: fewer than FULL, while all counters are 0.
        for (var at = vectors_there() * 4u * PACK + lane; at < there; at += WORKGROUP_SIZE) {
            let slot = bin_of(element(at)) - first_bin;
            settle(slot, add(slot, 1u));
        }
    }
#if VECTORS
    walk(part, lane);
#endif
    workgroupBarrier();
    flush_counters(lane);
}
