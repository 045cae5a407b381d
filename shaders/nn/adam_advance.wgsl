// Advances f = 1 - beta^t to the next step for both moments: f + (1 - beta) (1 - f). Runs in one thread.
struct Params {
    rest1: f32, // 1 - beta1
    rest2: f32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> fullness: array<f32>;

@compute @workgroup_size(1)
fn adam_advance() {
    fullness[0] += params.rest1 * (1.0 - fullness[0]);
    fullness[1] += params.rest2 * (1.0 - fullness[1]);
}
