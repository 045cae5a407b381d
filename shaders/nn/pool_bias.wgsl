// Adds the bias of the channel and applies the activation.
#import activation/none as activation

#if BIASED
const BIAS_BINDING: u32 = 2u;
@group(0) @binding(BIAS_BINDING) var<storage, read> bias: array<u32>;
#endif

fn finished(total: f32, cells: f32, plane: u32) -> f32 {
    var y = finish(total, cells);
#if BIASED
    let channel = (params.first + plane) % params.channels;
    y += decode(bias[channel / PACK], channel % PACK);
#endif
    return activate(y);
}
