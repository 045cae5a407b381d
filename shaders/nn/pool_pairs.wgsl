// One number from every 2 x 2 cells, none shared and none left over in a row, which has a multiple of 4. One
// invocation reads four cells of two rows and writes two numbers, UNITS times, a workgroup apart: all traffic
// coalesces, and all loads are in flight together.
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
    // What lies beyond the end is loaded from the end.
#repeat UNITS
    let unit$ = first + $u * WORKGROUP_SIZE + lane;
    let row$ = min(unit$, units - 1u) / across;
    let plane$ = row$ / params.p;
    let at$ = params.wide / 4u + (plane$ * params.h + row$ % params.p * 2u) * across + min(unit$, units - 1u) % across;
    upper[$] = input[at$];
    lower[$] = input[at$ + across];
#end
#repeat UNITS
    if unit$ < units {
        let a = decode4(upper[$]);
        let b = decode4(lower[$]);
        output[params.narrow / 2u + unit$] = encode2(
            window(a.x, a.y, b.x, b.y, plane$),
            window(a.z, a.w, b.z, b.w, plane$),
        );
    }
#end
}
