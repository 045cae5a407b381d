// First half of the separable box blur of bytes: running sums along rows. One thread computes those of a group of four.
#import conv/lines_params
#import conv/stencil_bytes_in
#import conv/lines_row

@group(0) @binding(2) var<storage, read_write> sums: array<vec4<u32>>;

const WORKGROUP_SIZE: u32 = 256u;

// Element `x` of the row that begins at `row`; 0 outside. Before the row `x` wraps to beyond it.
fn pixel(row: u32, x: u32) -> u32 {
    if x >= params.w { return 0u; }
    return byte_at(row + x);
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn blur_rows(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i >= params.tiles { return; }
    let row = i / params.groups * params.w;
    let x = i % params.groups * 4u;
    let r = params.radius_x;
#if STEPPED
    // Exact: a row of bytes adds up to less than 2^24.
    var sum = vec4<f32>();
    for (var tap = 0u; tap <= 2u * r; tap++) {
        sum += four(row, i32(x + tap * params.step) - i32(r * params.step));
    }
    sums[i] = vec4<u32>(sum);
#else
    // A window differs from the one before by the pixel that enters and the one that leaves.
    var first = 0u;
    for (var j = max(x, r) - r; j <= min(x + r, params.w - 1u); j++) { first += pixel(row, j); }
    let second = first + pixel(row, x + 1u + r) - pixel(row, x - r);
    let third = second + pixel(row, x + 2u + r) - pixel(row, x + 1u - r);
    let fourth = third + pixel(row, x + 3u + r) - pixel(row, x + 2u - r);
    sums[i] = vec4(first, second, third, fourth);
#endif
}
