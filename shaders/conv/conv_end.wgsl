// The epilogue of a layer: bias by channel, and activation. Requires f16 where R is f16.
#import activation/none as activation

#if F16
enable f16;
#endif

// Elements of the bias and the output.
alias R = f32;

const BIAS_BINDING: u32 = 3u;
#if BIAS
@group(0) @binding(BIAS_BINDING) var<storage, read> bias: array<R>;
#endif

fn finished(sum: f32, channel: u32) -> f32 {
#if BIAS
    return activate(sum + f32(bias[channel]));
#else
    return activate(sum);
#endif
}
