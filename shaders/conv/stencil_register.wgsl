// A filter with its sums in registers. One thread computes PACK x ROWS x PLANES outputs. It loads each row of inputs
// once, with its neighbours along x, and adds it to every sum that it is part of, without workgroup memory or barriers.
// Threads of a workgroup stand along x first, so that their loads coalesce and caches serve their overlap. Each product
// is written out: no compiler here unrolls on request, and sums that a loop indexes live in slow memory.
// VECTORS: rows are multiples of 4 long, loaded by vec4s. PACKED: elements are u8 or f16. With OPERAND the
// weights are in a buffer, otherwise in the uniform.
#import conv/stencil_params
#import conv/filter2d_tile as tile
#import conv/stencil_floats as element

const ROWS: u32 = 4u;
const PLANES: u32 = 1u;
const LANES_X: u32 = TILE_X / PACK;
const LANES_Y: u32 = TILE_Y / ROWS;
const LANES_Z: u32 = TILE_Z / PLANES;
const WORKGROUP_SIZE: u32 = LANES_X * LANES_Y * LANES_Z;

// A row takes LOADS loads, from left to right; number OWN holds the first of the outputs' own places. Tap 0 of the
// first output reads element FIRST of all loaded ones.
#if VECTORS
const OWN: u32 = (RADIUS_X + 3u) / 4u;
const LOADS: u32 = 2u * OWN + 1u;
const FIRST: u32 = 4u * OWN - RADIUS_X;
const NOTHING = vec4<f32>();
#else
const OWN: u32 = RADIUS_X;
const LOADS: u32 = 2u * OWN + PACK;
const NOTHING: f32 = 0.0;
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn stencil_register(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = workgroup_index(group);
    if tile >= params.tiles { return; }
    let place = vec3(lane % LANES_X, lane / LANES_X % LANES_Y, lane / (LANES_X * LANES_Y));
    let p = tile_origin(tile) + place * vec3(PACK, ROWS, PLANES);
    if any(p >= extents()) { return; }
#for tap in FILTER_X * FILTER_Y * FILTER_Z
#if OPERAND
    let w{tap} = filter_weights[{tap}u];
#else
    let w{tap} = params.weights[{tap / 4}u][{tap % 4}u];
#endif
#end
#for z in PLANES
#for y in ROWS
#if PACK == 4
    var sum{z}_{y} = vec4<f32>();
#else
    var sum{z}_{y} = 0.0;
#endif
#end
#end

    // The places of the loads of a row, and if they lie inside.
#if VECTORS
    let column = i32(p.x / 4u);
#for k in LOADS
    let x{k} = fold(column + ({k - OWN}), params.groups);
#if k != OWN
    let in_x{k} = column + ({k - OWN}) >= 0 && column + ({k - OWN}) < i32(params.groups);
#endif
#end
#else
    let column = i32(p.x);
#for k in LOADS
    let x{k} = fold(column + ({k - OWN}), params.w);
#if k != OWN
    let in_x{k} = column + ({k - OWN}) >= 0 && column + ({k - OWN}) < i32(params.w);
#endif
#end
#endif
#for y in ROWS + FILTER_Y - 1
    let y{y} = fold(i32(p.y) + ({y - RADIUS_Y}), params.h);
#if ZERO
    let in_y{y} = counts(i32(p.y) + ({y - RADIUS_Y}), params.h);
#endif
#end

    // Row y of plane z of the inputs: its loads, with elements beyond an end replaced, then the reads of each tap
    // along x, and last the sums that the row is part of. For the outputs of row `row` it stands under row y - row
    // of the filter. A load of a vec4 beyond an end got the four elements at the end; without ZERO and WRAP the
    // outermost is repeated.
#for z in PLANES + FILTER_Z - 1
    let z{z} = fold(i32(p.z) + ({z - RADIUS_Z}), params.d) * params.h;
#if ZERO
    let in_z{z} = counts(i32(p.z) + ({z - RADIUS_Z}), params.d);
#endif
#for y in ROWS + FILTER_Y - 1
#if VECTORS
    let row{z}_{y} = (z{z} + y{y}) * params.groups;
#else
    let row{z}_{y} = (z{z} + y{y}) * params.w;
#endif
#if ZERO
    let in{z}_{y} = in_z{z} && in_y{y};
#endif
#for k in LOADS
#if PACKED && VECTORS
    let at{z}_{y}_{k} = load_group(row{z}_{y} + x{k});
#else
    let at{z}_{y}_{k} = load(row{z}_{y} + x{k});
#endif
#if ZERO && k == OWN
    let v{z}_{y}_{k} = select(NOTHING, at{z}_{y}_{k}, in{z}_{y});
#else
#if ZERO
    let v{z}_{y}_{k} = select(NOTHING, at{z}_{y}_{k}, in{z}_{y} && in_x{k});
#else
#if WRAP || !VECTORS || k == OWN
    let v{z}_{y}_{k} = at{z}_{y}_{k};
#else
    let v{z}_{y}_{k} = select(vec4(at{z}_{y}_{k}[{select(0, 3, k > OWN)}u]), at{z}_{y}_{k}, in_x{k});
#endif
#endif
#endif
#end
#if VECTORS
#for x in FILTER_X
    let a{z}_{y}_{x} = vec4(
#for i in FIRST + x..FIRST + x + 4
        v{z}_{y}_{i / 4}[{i % 4}u],
#end
    );
#end
#else
#for x in FILTER_X
#if PACKED
    let a{z}_{y}_{x} = vec4(v{z}_{y}_{x}, v{z}_{y}_{x + 1}, v{z}_{y}_{x + 2}, v{z}_{y}_{x + 3});
#else
    let a{z}_{y}_{x} = v{z}_{y}_{x};
#endif
#end
#endif
#for plane in max(0, z + 1 - FILTER_Z)..min(z + 1, PLANES)
#for row in max(0, y + 1 - FILTER_Y)..min(y + 1, ROWS)
#if PACK == 4
#for x in FILTER_X
    sum{plane}_{row} = fma(vec4(w{((z - plane) * FILTER_Y + y - row) * FILTER_X + x}), a{z}_{y}_{x}, sum{plane}_{row});
#end
#else
#for x in FILTER_X
    sum{plane}_{row} = fma(w{((z - plane) * FILTER_Y + y - row) * FILTER_X + x}, a{z}_{y}_{x}, sum{plane}_{row});
#end
#endif
#end
#end
#end
#end

#for z in PLANES
#for y in ROWS
    if p.y + {y}u < params.h && p.z + {z}u < params.d {
        put_group(p + vec3(0u, {y}u, {z}u), sum{z}_{y});
    }
#end
#end
}
