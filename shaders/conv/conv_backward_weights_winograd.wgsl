// Gradients of windows of 3 x 3, G^T u G of 36 sums each, added over `images` slices, and to the result of earlier
// dispatches where `first` is not 0.
// One thread computes one window; a workgroup WORKGROUP_SIZE of them.
#import conv/conv_params

const PLACES: u32 = 6u;
const ROWS: u32 = 3u;
@group(0) @binding(1) var<storage, read> sums: array<f32>;
@group(0) @binding(2) var<storage, read_write> output: array<f32>;

// G^T times a column.
fn narrow(u: array<f32, 6>) -> vec3<f32> {
    let near = (-1.0 / 6.0) * (u[1] + u[2]);
    let far = (1.0 / 24.0) * (u[3] + u[4]);
    let slope = (1.0 / 6.0) * (u[2] - u[1]) + (1.0 / 12.0) * (u[3] - u[4]);
    return vec3(0.25 * u[0] + near + far, slope, near + 4.0 * far + u[5]);
}

// The sum over all slices; `place` is the first of a place, with windows one after the other.
fn added(place: u32) -> f32 {
    var sum = 0.0;
    for (var slice = 0u; slice < params.images; slice++) { sum += sums[place + slice * 36u * params.count]; }
    return sum;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn conv_backward_weights_winograd(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(workgroup) * WORKGROUP_SIZE + lane;
    if at >= params.count { return; }
#for i in PLACES
    let from{i} = {i}u * params.count + at;
    let column{i} = narrow(array(
        added(from{i}),
        added(from{i} + 6u * params.count),
        added(from{i} + 12u * params.count),
        added(from{i} + 18u * params.count),
        added(from{i} + 24u * params.count),
        added(from{i} + 30u * params.count),
    ));
#end
#for i in ROWS
    let row{i} = narrow(array(column0[{i}], column1[{i}], column2[{i}], column3[{i}], column4[{i}], column5[{i}]));
    let to{i} = at * 9u + {i}u * 3u;
#end
#for i in ROWS
    if params.first > 0u {
        output[to{i}] += row{i}.x;
        output[to{i} + 1u] += row{i}.y;
        output[to{i} + 2u] += row{i}.z;
    } else {
        output[to{i}] = row{i}.x;
        output[to{i} + 1u] = row{i}.y;
        output[to{i} + 2u] = row{i}.z;
    }
#end
}
