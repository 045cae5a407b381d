// The rate of a step: of a binding with RATED, else of the parameters.
#if RATED
const RATE_BINDING: u32 = 3u;
@group(0) @binding(RATE_BINDING) var<storage, read> rate: array<f32>;
fn step_rate() -> f32 { return rate[0]; }
#else
fn step_rate() -> f32 { return params.rate; }
#endif
