// Copies the last labels and values of a reduction of runs, at most 64 of each, side by side: with the length, the
// kernels of runs_tiles would have one binding too many. One workgroup.
const WORKGROUP_SIZE: u32 = 64u;

struct Params {
    labels: u32, // at most 64
    values: u32, // words
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> labels: array<u32>;
@group(0) @binding(2) var<storage, read> values: array<u32>;
@group(0) @binding(3) var<storage, read_write> tails: array<u32>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn runs_tails(@builtin(local_invocation_index) lane: u32) {
    if lane < params.labels { tails[lane] = labels[lane]; }
    for (var i = lane; i < params.values; i += WORKGROUP_SIZE) { tails[64u + i] = values[i]; }
}
