// Weights in the order of a layer: M, C / groups, R, S; with LAST M, R, S, C / groups.
const WEIGHTS_BINDING: u32 = 2u;
@group(0) @binding(WEIGHTS_BINDING) var<storage, read> weights: array<T>;

// The weight of cell `tap` in the window of output channel `to` of a group over its input channel `channel`.
fn weight(group: u32, to: u32, channel: u32, tap: u32) -> f32 {
#if LAST
    let row = (group * params.channels_out + to) * (params.r * params.s) + tap;
    return f32(weights[row * params.channels_in + channel]);
#else
    let row = (group * params.channels_out + to) * params.channels_in + channel;
    return f32(weights[row * params.r * params.s + tap]);
#endif
}
