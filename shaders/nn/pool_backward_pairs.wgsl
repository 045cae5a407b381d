// Computes gradients of adjacent windows of 2 x 2, in rows of a multiple of 4. A thread reads two gradients, and with
// CELLS four cells of two rows, and writes eight gradients; UNITS times, a workgroup apart, so that each byte moves
// once and all loads are in flight together.
#import nn/pool_params
#import element/f32 as element
#import nn/pool_kinds
#import nn/pool_cells

const UNITS: u32 = 4u;
const GRADIENTS_BINDING: u32 = 2u;
const OUTPUT_BINDING: u32 = 3u;

#if CELLS
@group(0) @binding(1) var<storage, read> input: array<Cells>;
#endif
@group(0) @binding(GRADIENTS_BINDING) var<storage, read> gradients: array<Pair>;
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<Cells>;
#if WEIGHTED
const WEIGHTS_BINDING: u32 = 3u;
@group(0) @binding(WEIGHTS_BINDING) var<storage, read> weights: array<f32>;
#endif

// Returns the shares of the cells of a window, row by row.
fn shares(cells: vec4<f32>, gradient: f32) -> vec4<f32> {
#if MAX
    var total = cells.x;
    var place = 0u;
    for (var i = 1u; i < 4u; i++) {
        if cells[i] > total || is_nan(cells[i]) {
            total = cells[i];
            place = i;
        }
    }
    return select(vec4(0.0), vec4(gradient), vec4(0u, 1u, 2u, 3u) == vec4(place));
#else
#if L2
    let total = dot(cells, cells);
    return select(gradient * cells / finish(total, 1.0), vec4(0.0), total == 0.0);
#else
#if WEIGHTED
    return gradient * vec4(weights[0], weights[1], weights[2], weights[3]);
#else
    return vec4(0.25 * gradient);
#endif
#endif
#endif
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn pool_backward_pairs(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let across = params.w / 4u;
    let units = params.planes * params.p * across;
    let first = workgroup_index(group) * WORKGROUP_SIZE * UNITS;
    if first >= units {
        return;
    }
#if CELLS
    var upper: array<Cells, UNITS>;
    var lower: array<Cells, UNITS>;
#endif
    var pairs: array<Pair, UNITS>;
    // Loads past the end read the last unit.
#for i in UNITS
    let unit{i} = min(first + {i}u * WORKGROUP_SIZE + lane, units - 1u);
    let at{i} = params.wide / 4u + (unit{i} / across * 2u) * across + unit{i} % across;
#if CELLS
    upper[{i}] = input[at{i}];
    lower[{i}] = input[at{i} + across];
#endif
    pairs[{i}] = gradients[params.narrow / 2u + unit{i}];
#end
#for i in UNITS
    if first + {i}u * WORKGROUP_SIZE + lane < units {
        let gradient = decode2(pairs[{i}]);
#if CELLS
        let a = decode4(upper[{i}]);
        let b = decode4(lower[{i}]);
#else
        let a = vec4(0.0);
        let b = a;
#endif
        let left = shares(vec4(a.xy, b.xy), gradient.x);
        let right = shares(vec4(a.zw, b.zw), gradient.y);
        output[at{i}] = encode4(vec4(left.xy, right.xy));
        output[at{i} + across] = encode4(vec4(left.zw, right.zw));
    }
#end
}
