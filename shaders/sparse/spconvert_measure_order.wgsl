// The median and 80th-percentile row length, from keys of rows by falling length. One thread.
#import sparse/spconvert_params
#import sparse/spconvert_measures
#import sparse/spconvert_key

@group(0) @binding(2) var<storage, read> keys: array<Key>;

@compute @workgroup_size(1)
fn spconvert_measure_order(@builtin(workgroup_id) group: vec3<u32>) {
    if workgroup_index(group) > 0u {
        return;
    }
    let middle = params.longest - minor_of(keys[params.rows - 1u - params.begin]);
    atomicStore(&measures[MEDIAN], middle);
    atomicStore(&measures[FOUR_FIFTHS], params.longest - minor_of(keys[params.rows - 1u - params.end]));
}
