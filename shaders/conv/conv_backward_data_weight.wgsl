// Weights of the layer whose gradient is computed: output channels there are input channels here, windows are turned.
const WEIGHTS_BINDING: u32 = 2u;
@group(0) @binding(WEIGHTS_BINDING) var<storage, read> weights: array<f32>;

// The weight of cell `tap` in the window of output channel `to` of a group over its input channel `channel`.
fn weight(group: u32, to: u32, channel: u32, tap: u32) -> f32 {
    let row = (group * params.channels_in + channel) * params.channels_out + to;
    let taps = params.r * params.s;
    return weights[row * taps + taps - 1u - tap];
}
