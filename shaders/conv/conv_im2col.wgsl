// The cells under each window, as columns of a matrix: rows are channels and cells of a window, in the order of the
// weights, columns the outputs of all images, from number `first` on.
// One thread writes one element; a workgroup WORKGROUP_SIZE of them.
#import conv/conv_input

@group(0) @binding(2) var<storage, read_write> columns: array<f32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn conv_im2col(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(workgroup) * WORKGROUP_SIZE + lane;
    if at >= params.count * params.columns { return; }
    // Columns after the last output are never used.
    let pixels = params.p * params.q;
    let column = min(params.first + at % params.columns, params.images * pixels - 1u);
    let row = at / params.columns;
    let a = row / params.s % params.r;
    let channel = row / params.s / params.r;
    let channels = params.groups * params.channels_in;
    let plane = params.x_at + (column / pixels * channels + channel) * params.h * params.w;
    let y = column / params.q % params.p * params.stride_h - params.pad_h + a * params.dilation_h;
    let x_column = column % params.q * params.stride_w - params.pad_w + row % params.s * params.dilation_w;
    columns[at] = cell(plane, y, x_column);
}
