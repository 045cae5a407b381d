// Median filter of windows of 3 x 3 or 5 x 5: one thread sorts the columns of the windows of a group of four elements,
// each column once, and selects the medians by a network of minima and maxima in registers.
#import conv/lines_params
#import conv/lines_floats_in as source
#import conv/lines_floats_out as target
#import conv/lines_row
#import image/median_keys
#import image/median_of_9 as network

const WORKGROUP_SIZE: u32 = 256u;
const STEP: u32 = 1u;

// The four keys from number `by` on of eight.
fn shifted(a: Keys, b: Keys, by: u32) -> Keys {
    if by == 0u { return a; }
    if by == 1u { return Keys(a.yzw, b.x); }
    if by == 2u { return Keys(a.zw, b.xy); }
    return Keys(a.w, b.xyz);
}

fn median_of_3(a: Keys, b: Keys, c: Keys) -> Keys { return max(min(a, b), min(max(a, b), c)); }

@compute @workgroup_size(WORKGROUP_SIZE)
fn median_network(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i >= params.tiles { return; }
    let p = vec3(i % params.groups * 4u, i / params.groups % params.h, i / params.groups / params.h);
    put_group(p, elements_of(medians(p)));
}
