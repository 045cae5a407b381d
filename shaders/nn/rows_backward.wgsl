// Computes gradients of ops on rows: sums over a row of x (for softmax the result y) and of dy, then each element.
// LANES threads share a row; a workgroup computes as many rows as fit. HELD: the row stays in registers and is read
// once, else once for each pass. NORM: the statistics of each row are stored for the gradients of gamma.
#import rows/params
#import nn/items
#import workgroup/reduce_rows
#import nn/softmax_backward as gradient

const VEC4S: u32 = 1u;
const SPANS: u32 = WORKGROUP_SIZE / LANES;

@group(0) @binding(1) var<storage, read> input: array<Item>;
@group(0) @binding(2) var<storage, read> gradients: array<Item>;
@group(0) @binding(3) var<storage, read_write> output: array<Item>;
#if NORM
@group(0) @binding(4) var<storage, read> gamma: array<Item>;
@group(0) @binding(5) var<storage, read_write> joined: array<vec2<f32>>;

struct Sums { squares: vec4<f32>, gradients: vec4<f32>, products: vec4<f32> }

fn add_terms(sums: ptr<function, Sums>, d: Item, g: Item) {
    (*sums).squares += four(d * d);
    (*sums).gradients += four(g);
    (*sums).products += four(g * d);
}

fn scaled(g: Item, column: u32) -> Item { return g * gamma[column]; }
#else
struct Sums { products: vec4<f32> }

fn add_terms(sums: ptr<function, Sums>, x: Item, g: Item) { (*sums).products += four(term(x, g)); }

fn scaled(g: Item, column: u32) -> Item { return g; }
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn rows_backward(
#put row_builtins()
) {
    let first = workgroup_index(group) * SPANS;
    if first >= params.rows {
        return;
    }
#put row_lane()
    let row = first + lane / LANES;
    let exists = row < params.rows;
    let column = lane % LANES;
    let count = select(0u, params.n / WIDTH, exists);
    let base = (params.origin + select(0u, row * params.n, exists)) / WIDTH;
    let n = f32(params.n);
#if HELD
    // Loads have no branch: past the end they read the last item, which is not counted.
    var x: array<Item, VEC4S>;
    var g: array<Item, VEC4S>;
    let last = max(count, 1u) - 1u;
#for i in VEC4S
    x[{i}] = input[base + min(column + {i}u * LANES, last)];
    g[{i}] = scaled(gradients[base + min(column + {i}u * LANES, last)], min(column + {i}u * LANES, last));
#end
#endif
    var center = 0.0;
#if NORM
    if CENTERED {
        var sum = vec4(0.0);
#if HELD
#for i in VEC4S
        sum += select(vec4(0.0), four(x[{i}]), column + {i}u * LANES < count);
#end
#else
        for (var i = column; i < count; i += LANES) {
            sum += four(input[base + i]);
        }
#endif
        center = row_total(sum, false, 0u, lane, sub_size) / n;
    }
#endif
    var sums: Sums;
#if HELD
#for i in VEC4S
    x[{i}] -= Item(center);
    if column + {i}u * LANES < count {
        add_terms(&sums, x[{i}], g[{i}]);
    }
#end
#else
    for (var i = column; i < count; i += LANES) {
        add_terms(&sums, input[base + i] - Item(center), scaled(gradients[base + i], i));
    }
#endif
    let products = row_total(sums.products, false, 1u, lane, sub_size);
#if NORM
    let squares = row_total(sums.squares, false, 2u, lane, sub_size);
    let factor = inverseSqrt(squares / n + params.eps);
    var drift = 0.0;
    if CENTERED {
        drift = row_total(sums.gradients, false, 3u, lane, sub_size) / n;
    }
    let pull = products / n * factor * factor;
    if exists && column == 0u {
        joined[params.first + row] = vec2(center, factor);
    }
#endif
#if HELD
#for i in VEC4S
    if column + {i}u * LANES < count {
#if NORM
        output[base + column + {i}u * LANES] = factor * (g[{i}] - Item(drift) - x[{i}] * pull);
#else
        output[base + column + {i}u * LANES] = result(x[{i}], g[{i}], products);
#endif
    }
#end
#else
    for (var i = column; i < count; i += LANES) {
        let x = input[base + i] - Item(center);
        let g = scaled(gradients[base + i], i);
#if NORM
        output[base + i] = factor * (g - Item(drift) - x * pull);
#else
        output[base + i] = result(x, g, products);
#endif
    }
#endif
}
