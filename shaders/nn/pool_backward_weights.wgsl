// Sums the products of cells and gradients for each weight of the windows of a weighted pool. A workgroup takes `block`
// windows that follow each other and CELLS of the R S weights, each thread every 256th window; with COLUMNS of all
// weights, each thread every 256th run of ROWS windows down a column, whose cells it loads once; with WIDE of ROWS x 4
// windows, with loads of four cells, and with WHOLE of four gradients. It writes one partial sum for each weight, and
// pool_backward_weights_sum adds them.
#import nn/pool_params
#import element/f32 as element

const CELLS: u32 = 4u;
const GROUPS: u32 = 1u; // of CELLS weights

#if WIDE
@group(0) @binding(1) var<storage, read> input: array<vec4<u32>>;
#else
@group(0) @binding(1) var<storage, read> input: array<u32>;
#endif
#if WHOLE
@group(0) @binding(2) var<storage, read> gradients: array<vec4<u32>>;
#else
@group(0) @binding(2) var<storage, read> gradients: array<u32>;
#endif
@group(0) @binding(3) var<storage, read_write> output: array<f32>; // a row of parts for each weight

// Where the partial sum of a weight goes.
fn partial_place(weight: u32, part: u32) -> u32 { return weight * params.all_parts + params.first_part + part; }

#if COLUMNS
const R: u32 = 2u;
const S: u32 = 2u;
const STRIDE: u32 = 2u; // down
const ROWS: u32 = 4u; // windows of a run
const CELL_ROWS: u32 = (ROWS - 1u) * STRIDE + R;
// Windows of a run across, and cells of a row under them.
#if WIDE
const STRIDE_W: u32 = 2u;
const ACROSS: u32 = 4u;
const SPAN: u32 = (ACROSS - 1u) * STRIDE_W + S;
#else
const ACROSS: u32 = 1u;
const SPAN: u32 = S;
#endif

// A row of sums of the threads for each weight.
var<workgroup> wg_sums: array<f32, R * S * WORKGROUP_SIZE>;

#if !WIDE
fn cell(place: u32) -> f32 { return decode(input[place / PACK], place % PACK); }
#endif
#else
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
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn pool_backward_weights(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
#if COLUMNS
    let part = workgroup_index(group);
    let runs = (params.p + ROWS - 1u) / ROWS;
    let columns = (params.q + ACROSS - 1u) / ACROSS;
    let all = params.planes * runs * columns;
    if part * params.block >= all {
        return;
    }
#for c in R * S
    var sum_{c} = 0.0;
#end
    let end = min((part + 1u) * params.block, all);
    for (var k = part * params.block + lane; k < end; k += WORKGROUP_SIZE) {
        let j = k % columns * ACROSS;
        let i = k / columns % runs * ROWS;
        let plane = k / columns / runs;
        // Coordinates before the image wrap around. Loads outside read the last row or column.
        let y0 = i * STRIDE - params.top;
#if WIDE
        let fours = params.w / 4u;
#for y in CELL_ROWS
        let row_{y} = params.wide / 4u + (plane * params.h + min(y0 + {y}u, params.h - 1u)) * fours;
#for f in (SPAN + 3) / 4
        let four_{y}_{f} = bitcast<vec4<f32>>(input[row_{y} + min(j * STRIDE_W / 4u + {f}u, fours - 1u)]);
#end
#for x in SPAN
        let cell_{y}_{x} = four_{y}_{x / 4}[{x % 4}u];
#end
#end
#else
        let x0 = j * params.stride_w - params.left;
#for b in S
        let x_{b} = x0 + {b}u * params.dilation_w;
        let column_{b} = min(x_{b}, params.w - 1u);
#end
#for y in CELL_ROWS
        let row_{y} = params.wide + (plane * params.h + min(y0 + {y}u, params.h - 1u)) * params.w;
#for b in S
        let cell_{y}_{b} = cell(row_{y} + column_{b});
#end
#end
#endif
#for u in ROWS
        let line_{u} = params.narrow + (plane * params.p + min(i + {u}u, params.p - 1u)) * params.q;
#if WHOLE
        let gradients_{u} = bitcast<vec4<f32>>(gradients[(line_{u} + j) / 4u]);
#for v in ACROSS
        let gradient_{u}_{v} = gradients_{u}[{v}u];
#end
#else
#for v in ACROSS
        let at_{u}_{v} = line_{u} + min(j + {v}u, params.q - 1u);
        let gradient_{u}_{v} = decode(gradients[at_{u}_{v} / PACK], at_{u}_{v} % PACK);
#end
#endif
#end
#for u in ROWS
#for v in ACROSS
#if WIDE && !WHOLE
        if i + {u}u < params.p && j + {v}u < params.q {
#else
        if i + {u}u < params.p {
#endif
#for a in R
#for b in S
#if PADDED
            let inside_{a}_{b} = y0 + {u * STRIDE + a}u < params.h && x_{b} < params.w;
            sum_{a * S + b} += select(0.0, gradient_{u}_{v} * cell_{u * STRIDE + a}_{b}, inside_{a}_{b});
#else
#if WIDE
            sum_{a * S + b} += gradient_{u}_{v} * cell_{u * STRIDE + a}_{v * STRIDE_W + b};
#else
            sum_{a * S + b} += gradient_{u}_{v} * cell_{u * STRIDE + a}_{b};
#endif
#endif
#end
#end
        }
#end
#end
    }
#for c in R * S
    wg_sums[{c}u * WORKGROUP_SIZE + lane] = sum_{c};
#end
    for (var stride = WORKGROUP_SIZE / 2u; stride > 0u; stride /= 2u) {
        workgroupBarrier();
        if lane < stride {
#for c in R * S
            wg_sums[{c}u * WORKGROUP_SIZE + lane] += wg_sums[{c}u * WORKGROUP_SIZE + lane + stride];
#end
        }
    }
    if lane == 0u {
#for c in R * S
        output[partial_place({c}u, part)] = wg_sums[{c}u * WORKGROUP_SIZE];
#end
    }
#else
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
        output[partial_place(first_cell + {c}u, part)] = total_{c};
    }
#end
#endif
}
