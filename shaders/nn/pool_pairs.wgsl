// Pools adjacent windows of 2 x 2, in rows of a multiple of 4. A thread reads four cells of two rows and writes two
// results; UNITS times, a workgroup apart, so that all traffic coalesces and all loads are in flight together.
#import nn/pool_params
#import element/f32 as element
#import nn/pool_kinds
#import nn/pool_cells
#import nn/pool_bias

const UNITS: u32 = 4u;
const OUTPUT_BINDING: u32 = 2u;

@group(0) @binding(1) var<storage, read> input: array<Cells>;
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<Pair>;
#if WEIGHTED
const WEIGHTS_BINDING: u32 = 3u;
@group(0) @binding(WEIGHTS_BINDING) var<storage, read> weights: array<f32>;
#endif

fn window(a: f32, b: f32, c: f32, d: f32, plane: u32) -> f32 {
#if WEIGHTED
    let total = a * weights[0] + b * weights[1] + c * weights[2] + d * weights[3];
#else
    let total = join(join(join(join(begin(), a), b), c), d);
#endif
    return finished(total, 4.0, plane);
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn pool_pairs(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let across = params.w / 4u;
    let units = params.planes * params.p * across;
    let first = workgroup_index(group) * WORKGROUP_SIZE * UNITS;
    if first >= units {
        return;
    }
    var upper: array<Cells, UNITS>;
    var lower: array<Cells, UNITS>;
    // Loads past the end read the last unit.
#for i in UNITS
    let unit{i} = first + {i}u * WORKGROUP_SIZE + lane;
    let row{i} = min(unit{i}, units - 1u) / across;
    let plane{i} = row{i} / params.p;
    let at{i} = params.wide / 4u + (plane{i} * params.h + row{i} % params.p * 2u) * across + min(unit{i}, units - 1u) % across;
    upper[{i}] = input[at{i}];
    lower[{i}] = input[at{i} + across];
#end
#for i in UNITS
    if unit{i} < units {
        let a = decode4(upper[{i}]);
        let b = decode4(lower[{i}]);
        output[params.narrow / 2u + unit{i}] = encode2(
            window(a.x, a.y, b.x, b.y, plane{i}),
            window(a.z, a.w, b.z, b.w, plane{i}),
        );
    }
#end
}
