// First half of the separable box blur: sums along rows. One invocation computes the sums of a group; a window
// differs from the one before by the pixel that enters and the one that leaves.
#import image/blur_params
#import conv/byte_input

@group(0) @binding(2) var<storage, read_write> sums: array<vec4<u32>>;

const WORKGROUP_SIZE: u32 = 256u;

// Pixel `x` of the row that begins at `row`; 0 outside. Before the row `x` wraps to beyond it.
fn pixel(row: u32, x: u32) -> u32 {
    if x >= params.w {
        return 0u;
    }
    return byte_at(row + x);
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn blur_rows(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i >= params.work {
        return;
    }
    let row = i / params.groups * params.w;
    let x = i % params.groups * 4u;
    let r = params.radius;
    var first = 0u;
    let window = reach(x, params.w);
    for (var j = window.x; j <= window.y; j++) {
        first += pixel(row, j);
    }
    let second = first + pixel(row, x + 1u + r) - pixel(row, x - r);
    let third = second + pixel(row, x + 2u + r) - pixel(row, x + 1u - r);
    let fourth = third + pixel(row, x + 3u + r) - pixel(row, x + 2u - r);
    sums[i] = vec4(first, second, third, fourth);
}
