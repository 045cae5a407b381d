// Weights of windows of 3 x 3, G g G^T: 36 numbers each (Lavin and Gray, 2016), one matrix for each of the 36 places.
// One thread transforms one window; a workgroup WORKGROUP_SIZE of them.
#import conv/conv_params
#import conv/conv_weight as weight

const CELLS: u32 = 3u;
const PLACES: u32 = 6u;
@group(0) @binding(2) var<storage, read_write> transformed: array<f32>;

// G times a column.
fn widen(g: vec3<f32>) -> array<f32, 6> {
    let ends = g.x + g.z;
    let half = g.x + 4.0 * g.z;
    return array(
        0.25 * g.x,
        (-1.0 / 6.0) * (ends + g.y),
        (-1.0 / 6.0) * (ends - g.y),
        (1.0 / 24.0) * (half + 2.0 * g.y),
        (1.0 / 24.0) * (half - 2.0 * g.y),
        g.z,
    );
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn conv_winograd_weights(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(workgroup) * WORKGROUP_SIZE + lane;
    if at >= params.count { return; }
    let filter_ = at / params.channels_in;
    let channel = at % params.channels_in;
    let group = filter_ / params.channels_out;
    let to = filter_ % params.channels_out;
#for i in CELLS
    let column{i} = widen(vec3(
        weight(group, to, channel, {i}u),
        weight(group, to, channel, {i}u + 3u),
        weight(group, to, channel, {i}u + 6u),
    ));
#end
#for i in PLACES
    let row{i} = widen(vec3(column0[{i}], column1[{i}], column2[{i}]));
    let to{i} = {i}u * 6u * params.count + at;
    transformed[to{i}] = row{i}[0];
    transformed[to{i} + params.count] = row{i}[1];
    transformed[to{i} + 2u * params.count] = row{i}[2];
    transformed[to{i} + 3u * params.count] = row{i}[3];
    transformed[to{i} + 4u * params.count] = row{i}[4];
    transformed[to{i} + 5u * params.count] = row{i}[5];
#end
}
