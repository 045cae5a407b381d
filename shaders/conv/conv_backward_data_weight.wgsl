// Weights of the layer whose gradient is computed: output channels there are input channels here, windows are turned.
const WEIGHTS_BINDING: u32 = 2u;
@group(0) @binding(WEIGHTS_BINDING) var<storage, read> weights: array<T>;

// The weight of cell `tap` in the window of output channel `to` of a group over its input channel `channel`.
fn weight(group: u32, to: u32, channel: u32, tap: u32) -> f32 {
#if LAST
    let taps = params.r * params.s;
    let row = (group * params.channels_in + channel) * taps + taps - 1u - tap;
    return f32(weights[row * params.channels_out + to]);
#else
    let row = (group * params.channels_in + channel) * params.channels_out + to;
    let taps = params.r * params.s;
    return f32(weights[row * taps + taps - 1u - tap]);
#endif
}
