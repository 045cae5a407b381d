// Second half of the separable box blur of bytes: running sums of row sums along columns, and their means. One thread
// walks down ROWS pixels of a group of four columns; each step adds the row that enters the window and subtracts the
// one that leaves.
#import conv/lines_params
#import conv/stencil_bytes_out
#import image/blur_mean

const WORKGROUP_SIZE: u32 = 256u;
const ROWS: u32 = 16u;

@group(0) @binding(1) var<storage, read> sums: array<vec4<u32>>;

// The sums of row `y` of the plane that begins at `first`; 0 outside. Before the image `y` wraps to beyond it.
fn row_sums(first: u32, y: u32) -> vec4<u32> {
    if y >= params.h { return vec4<u32>(); }
    return sums[first + y * params.groups];
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn blur_columns(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i >= params.tiles { return; }
    let blocks = (params.h - 1u) / ROWS + 1u;
    let rest = i / params.groups;
    let p = vec3(i % params.groups * 4u, rest % blocks * ROWS, rest / blocks);
    let first = p.z * params.h * params.groups + i % params.groups;
    let r = params.radius_y;
    var sum = vec4<u32>();
    let window = reach(p.y, r, params.h);
    for (var y = window.x; y <= window.y; y++) { sum += sums[first + y * params.groups]; }
    for (var y = p.y; y < min(p.y + ROWS, params.h); y++) {
        if y > p.y { sum += row_sums(first, y + r) - row_sums(first, y - 1u - r); }
        let at = vec3(p.x, y, p.z);
        put_group(at, mean(at, sum));
    }
}
