// Sums the products of cells and gradients for each weight of the windows of a weighted pool. A workgroup takes `block`
// windows that follow each other and CELLS of the R S weights, each thread every 256th window; it writes one partial
// sum for each weight.
#import nn/pool_params
#import element/f32 as element

const CELLS: u32 = 4u;
const GROUPS: u32 = 1u; // of CELLS weights

@group(0) @binding(1) var<storage, read> input: array<u32>;
@group(0) @binding(2) var<storage, read> gradients: array<u32>;
@group(0) @binding(3) var<storage, read_write> output: array<f32>; // a row of weights for each part

var<workgroup> wg_sums: array<f32, WORKGROUP_SIZE>;

// The total of all threads, in the first one.
fn workgroup_total(lane: u32, own: f32) -> f32 {
    workgroupBarrier(); // The previous total may still be read.
    wg_sums[lane] = own;
    for (var stride = WORKGROUP_SIZE / 2u; stride > 0u; stride /= 2u) {
        workgroupBarrier();
        if lane < stride {
            wg_sums[lane] += wg_sums[lane + stride];
        }
    }
    return wg_sums[lane];
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn pool_backward_weights(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = workgroup_index(group);
    let part = index / GROUPS;
    let windows = params.planes * params.p * params.q;
    if part * params.block >= windows {
        return;
    }
    let first_cell = index % GROUPS * CELLS;
    let all = params.r * params.s;
#for c in CELLS
    var sum_{c} = 0.0;
    let a_{c} = (first_cell + {c}u) / params.s * params.dilation_h;
    let b_{c} = (first_cell + {c}u) % params.s * params.dilation_w;
#end
    let end = min((part + 1u) * params.block, windows);
    for (var k = part * params.block + lane; k < end; k += WORKGROUP_SIZE) {
        let j = k % params.q;
        let i = k / params.q % params.p;
        let base = params.wide + k / params.q / params.p * params.h * params.w;
        let at = params.narrow + k;
        let gradient = decode(gradients[at / PACK], at % PACK);
        // Coordinates before the image wrap around, which puts them outside too.
        let y0 = i * params.stride_h - params.top;
        let x0 = j * params.stride_w - params.left;
#for c in CELLS
        if y0 + a_{c} < params.h && x0 + b_{c} < params.w {
            let place = base + (y0 + a_{c}) * params.w + x0 + b_{c};
            sum_{c} += gradient * decode(input[place / PACK], place % PACK);
        }
#end
    }
#for c in CELLS
    let total_{c} = workgroup_total(lane, sum_{c});
    if lane == 0u && first_cell + {c}u < all {
        output[(params.first_part + part) * all + first_cell + {c}u] = total_{c};
    }
#end
}
