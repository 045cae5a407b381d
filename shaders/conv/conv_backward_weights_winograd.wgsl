// Gradients of windows of 3 x 3, G^T u G of the 36 sums that stand for each, added up over `images` slices; added to
// what a dispatch before left where `first` is not 0.
// One invocation computes one window; a workgroup WORKGROUP_SIZE of them.
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

// Over all slices; `place` is a place's first, of windows one after the other.
fn added(place: u32) -> f32 {
    var sum = 0.0;
    for (var slice = 0u; slice < params.images; slice++) {
        sum += sums[place + slice * 36u * params.count];
    }
    return sum;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn transform_back(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(workgroup) * WORKGROUP_SIZE + lane;
    if at >= params.count {
        return;
    }
#repeat PLACES
    let from$ = $u * params.count + at;
    let column$ = narrow(array(
        added(from$),
        added(from$ + 6u * params.count),
        added(from$ + 12u * params.count),
        added(from$ + 18u * params.count),
        added(from$ + 24u * params.count),
        added(from$ + 30u * params.count),
    ));
#end
#repeat ROWS
    let row$ = narrow(array(column0[$], column1[$], column2[$], column3[$], column4[$], column5[$]));
    let to$ = at * 9u + $u * 3u;
#end
#repeat ROWS
    if params.first > 0u {
        output[to$] += row$.x;
        output[to$ + 1u] += row$.y;
        output[to$ + 2u] += row$.z;
    } else {
        output[to$] = row$.x;
        output[to$ + 1u] = row$.y;
        output[to$ + 2u] = row$.z;
    }
#end
}
