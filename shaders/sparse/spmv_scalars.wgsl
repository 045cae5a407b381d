// y = alpha t + beta y with alpha and beta from the device, after a product t = A x or A B. One thread per element.
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    count: u32,  // elements of t
    cols: u32,   // elements of a row
    stride: u32, // elements from one row of y to the next
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> sums: array<f32>;
@group(0) @binding(2) var<storage, read> scalars: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn spmv_scalars(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if at >= params.count {
        return;
    }
    let to = at / params.cols * params.stride + at % params.cols;
    // A factor of 0 hides its operand, even NaN.
    var value = select(scalars[0] * sums[at], 0.0, scalars[0] == 0.0);
    if scalars[1] != 0.0 {
        value += scalars[1] * y[to];
    }
    y[to] = value;
}
