// A convolution layer, or its gradient with respect to x, by the definition.
// One thread computes one output, channel by channel of its group; a workgroup WORKGROUP_SIZE of them.
#import conv/conv_input
#import conv/conv_weight as weight
#import conv/conv_end

const OUTPUT_BINDING: u32 = 3u;
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<R>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn conv_direct(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = params.first + workgroup_index(workgroup) * WORKGROUP_SIZE + lane;
    if at >= params.count { return; }
    let pixels = params.p * params.q;
#if LAST
    let channel = at % (params.groups * params.channels_out);
    let pixel = at / (params.groups * params.channels_out);
    let image = pixel / pixels;
    let apart = params.groups * params.channels_in;
#else
    let channel = at / pixels % (params.groups * params.channels_out);
    let image = at / pixels / (params.groups * params.channels_out);
#endif
    let group = channel / params.channels_out;
#if LAST
    let y0 = pixel / params.q % params.p * params.stride_h - params.pad_h;
    let x0 = pixel % params.q * params.stride_w - params.pad_w;
    let channels = params.x_at + image * params.h * params.w * apart + group * params.channels_in;
#else
    let y0 = at / params.q % params.p * params.stride_h - params.pad_h;
    let x0 = at % params.q * params.stride_w - params.pad_w;
    let channels = (image * params.groups + group) * params.channels_in;
#endif
    var sum = 0.0;
    for (var i = 0u; i < params.channels_in; i++) {
#if !LAST
        let plane = params.x_at + (channels + i) * params.h * params.w;
#endif
        for (var a = 0u; a < params.r; a++) {
            let y = y0 + a * params.dilation_h;
            if !is_row(y) { continue; }
#if LAST
            let row = y / UP_H * params.w;
#else
            let row = plane + y / UP_H * params.w;
#endif
            for (var b = 0u; b < params.s; b++) {
                let column = x0 + b * params.dilation_w;
                if is_column(column) {
                    let w = weight(group, channel % params.channels_out, i, a * params.s + b);
#if LAST
                    sum += w * f32(x[channels + i + (row + column / UP_W) * apart]);
#else
                    sum += w * f32(x[row + column / UP_W]);
#endif
                }
            }
        }
    }
    output[params.y_at + at] = R(finished(sum, channel));
}
