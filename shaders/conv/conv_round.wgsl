// The gradient of a layer with respect to its weights or bias from slabs of sums: their sum, in the order and the type
// of the result. A slab has `row` sums for each filter, with channels and cells of a window `channel_step` and
// `cell_step` apart. LAST: channels of the result lie next to each other.
// One thread makes one element; a workgroup WORKGROUP_SIZE of them. Requires f16 where R is f16.
#import workgroup/index
#if F16
enable f16;
#endif

alias R = f32;
const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    count: u32, slabs: u32, slab: u32, channels: u32, cells: u32, row: u32, channel_step: u32, cell_step: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> slabs: array<f32>;
@group(0) @binding(2) var<storage, read_write> output: array<R>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn conv_round(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(workgroup) * WORKGROUP_SIZE + lane;
    if at >= params.count { return; }
    let inside = at % (params.channels * params.cells);
#if LAST
    let channel = inside % params.channels;
    let cell = inside / params.channels;
#else
    let channel = inside / params.cells;
    let cell = inside % params.cells;
#endif
    let filter_ = at / params.channels / params.cells;
    let from_ = filter_ * params.row + channel * params.channel_step + cell * params.cell_step;
    var sum = 0.0;
    for (var slab = 0u; slab < params.slabs; slab++) { sum += slabs[from_ + slab * params.slab]; }
    output[at] = R(sum);
}
