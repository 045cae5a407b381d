// Second half of the separable box blur: sums of the rows' sums along columns, and their averages. One
// invocation walks down ROWS pixels of the four columns of a group; a window differs from the one before by the
// row that enters and the one that leaves.
#import image/blur_params
#import image/blur_average

const WORKGROUP_SIZE: u32 = 256u;
const ROWS: u32 = 16u;

@group(0) @binding(1) var<storage, read> sums: array<vec4<u32>>;

// The sums of row `y`; 0 outside. Before the image `y` wraps to beyond it.
fn row_sums(x: u32, y: u32) -> vec4<u32> {
    if y >= params.h {
        return vec4<u32>();
    }
    return sums[y * params.groups + x];
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn blur_columns(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let i = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if i >= params.work {
        return;
    }
    let x = i % params.groups;
    let top = i / params.groups * ROWS;
    let r = params.radius;
    var sum = vec4<u32>();
    let window = reach(top, params.h);
    for (var y = window.x; y <= window.y; y++) {
        sum += sums[y * params.groups + x];
    }
    for (var y = top; y < min(top + ROWS, params.h); y++) {
        if y > top {
            sum += row_sums(x, y + r) - row_sums(x, y - 1u - r);
        }
        var word = 0u;
        for (var k = 0u; k < min(PACK, params.w - x * PACK); k++) {
            word |= average(sum[k], vec2(x * PACK + k, y)) << (8u * k);
        }
        put_word(vec3(x * PACK, y, 0u), word);
    }
}
