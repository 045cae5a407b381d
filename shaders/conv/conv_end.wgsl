// The epilogue of a layer: bias by channel, and activation.
#import activation/none as activation

const BIAS_BINDING: u32 = 3u;
#if BIAS
@group(0) @binding(BIAS_BINDING) var<storage, read> bias: array<f32>;
#endif

fn finished(sum: f32, channel: u32) -> f32 {
#if BIAS
    return activate(sum + bias[channel]);
#else
    return activate(sum);
#endif
}
