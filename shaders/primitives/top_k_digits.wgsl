// A pass of top-k's radix select: counts the digits of the numbers that share the digits found so far. One workgroup
// walks the keys in steps of the grid, counts in workgroup memory and adds its counts at the end.
#import dispatch/extent
#import primitives/sort_key
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const BINS: u32 = 2048u;

struct Params {
    n: u32,          // keys of the part
    workgroups: u32, // that share them
    shift: u32,      // lowest bit of the digit
    found: u32,      // bits from the highest on that are found
    before: u32,     // keys of earlier parts
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> keys: array<u32>;
@group(0) @binding(2) var<storage, read> search: array<u32>;
@group(0) @binding(3) var<storage, read_write> bins: array<atomic<u32>>;

#put extent(params.n, params.before)

var<workgroup> wg_bins: array<atomic<u32>, BINS>;

// Neighbours often have the same digit: counted together, they do not meet in one word.
var<private> digit: u32;
var<private> run: u32;

fn count_key(key: u32, number: u32, mask: u32) {
    let own = order(key);
    if ((own ^ number) & mask) == 0u {
        let next = (own >> params.shift) % BINS;
        if next != digit && run > 0u {
            atomicAdd(&wg_bins[digit], run);
            run = 0u;
        }
        digit = next;
        run++;
    }
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn top_k_digits(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = workgroup_index(group);
    if index >= params.workgroups { return; }
    for (var bin = lane; bin < BINS; bin += WORKGROUP_SIZE) { atomicStore(&wg_bins[bin], 0u); }
    workgroupBarrier();
    let number = search[0];
    let mask = select(0xffffffffu << ((32u - params.found) % 32u), 0u, params.found == 0u);
    digit = 0u;
    run = 0u;
    let step = params.workgroups * WORKGROUP_SIZE;
    var at = index * WORKGROUP_SIZE + lane;
    let there = extent();
    // Four loads in flight.
    while at + 3u * step < there {
        let a = keys[at];
        let b = keys[at + step];
        let c = keys[at + 2u * step];
        let d = keys[at + 3u * step];
        count_key(a, number, mask);
        count_key(b, number, mask);
        count_key(c, number, mask);
        count_key(d, number, mask);
        at += 4u * step;
    }
    while at < there {
        count_key(keys[at], number, mask);
        at += step;
    }
    if run > 0u { atomicAdd(&wg_bins[digit], run); }
    workgroupBarrier();
    for (var bin = lane; bin < BINS; bin += WORKGROUP_SIZE) {
        let keys_here = atomicLoad(&wg_bins[bin]);
        if keys_here > 0u { atomicAdd(&bins[bin], keys_here); }
    }
}
