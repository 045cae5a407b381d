// A filter that is a product of lines, with its sums in registers. One thread computes 4 x ROWS x PLANES outputs. It
// loads each row of inputs that they need once and sums it along x. That sum goes to every sum along y that it is part
// of, and those go to the sums along z. It needs neither workgroup memory nor barriers.
// Every product is written out, as in `stencil_register`. Rows are multiples of 4 long, and neighbours along x stand
// APART elements from each other. PACKED: elements are u8 or f16.
#import conv/lines_params
#import conv/filter2d_tile as tile
#import conv/stencil_floats as element
#import conv/finish_plain as finish

// Weights of the lines, which are odd numbers. The uniform has those along x first, then y, then z.
const LINE_X: u32 = 3u;
const LINE_Y: u32 = 3u;
const LINE_Z: u32 = 1u;
const APART: u32 = 1u;
const ROWS: u32 = 4u;
const PLANES: u32 = 1u;
const LANES_X: u32 = TILE_X / 4u;
const LANES_Y: u32 = TILE_Y / ROWS;
const LANES_Z: u32 = TILE_Z / PLANES;
const WORKGROUP_SIZE: u32 = LANES_X * LANES_Y * LANES_Z;

// A row takes LOADS loads of vec4s, from left to right; number OWN is the outputs' own. Tap 0 of the first output
// reads element FIRST of all loaded ones.
const OWN: u32 = (LINE_X / 2u * APART + 3u) / 4u;
const LOADS: u32 = 2u * OWN + 1u;
const FIRST: u32 = 4u * OWN - LINE_X / 2u * APART;

#if APART == 3 && !ZERO && !WRAP
// Four elements beyond the end of a row of pixels of three channels: the pixel at the end, repeated, from `channel`
// on.
fn turned(pixel: vec3<f32>, channel: u32) -> vec4<f32> {
    return select(select(pixel.zxyz, pixel.yzxy, channel == 1u), pixel.xyzx, channel == 0u);
}
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn lines_register(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = workgroup_index(group);
    if tile >= params.tiles { return; }
    let place = vec3(lane % LANES_X, lane / LANES_X % LANES_Y, lane / (LANES_X * LANES_Y));
    let p = tile_origin(tile) + place * vec3(4u, ROWS, PLANES);
    if any(p >= extents()) { return; }
#for tap in LINE_X + LINE_Y + LINE_Z
    let w{tap} = params.weights[{tap}u];
#end
#for z in PLANES
#for y in ROWS
    var sum{z}_{y} = vec4<f32>();
#end
#end

    // The places of the loads of a row, and if they lie inside. For pixels of three channels also their first
    // channel: each load begins a channel further. Whole pixels are added, so that nothing is below 0.
    let column = i32(p.x / 4u);
#for k in LOADS
    let x{k} = fold(column + ({k - OWN}), params.groups);
#if k != OWN
    let in_x{k} = column + ({k - OWN}) >= 0 && column + ({k - OWN}) < i32(params.groups);
#if APART == 3 && !ZERO && !WRAP
    let channel{k} = u32(column + ({k - OWN + 3 * max(k - OWN, OWN - k)})) % 3u;
#endif
#endif
#end
#for y in ROWS + LINE_Y - 1
    let y{y} = fold(i32(p.y) + ({y - LINE_Y / 2}), params.h);
#if ZERO
    let in_y{y} = counts(i32(p.y) + ({y - LINE_Y / 2}), params.h);
#endif
#end

    // Row y of plane z of the inputs: its loads, with elements beyond an end replaced, then the reads of each tap
    // along x, their sum, and the sums along y that it is part of. Without a line along z these are the results. A
    // load beyond an end got the four elements at the end; without ZERO and WRAP their outermost element, or pixel,
    // is repeated.
#for z in PLANES + LINE_Z - 1
    let z{z} = fold(i32(p.z) + ({z - LINE_Z / 2}), params.d) * params.h;
#if ZERO
    let in_z{z} = counts(i32(p.z) + ({z - LINE_Z / 2}), params.d);
#endif
#if LINE_Z > 1
#for row in ROWS
    var flat{z}_{row} = vec4<f32>();
#end
#endif
#for y in ROWS + LINE_Y - 1
    let row{z}_{y} = (z{z} + y{y}) * params.groups;
#if ZERO
    let in{z}_{y} = in_z{z} && in_y{y};
#endif
#for k in LOADS
#if PACKED
    let at{z}_{y}_{k} = load_group(row{z}_{y} + x{k});
#else
    let at{z}_{y}_{k} = load(row{z}_{y} + x{k});
#endif
#if ZERO && k == OWN
    let v{z}_{y}_{k} = select(vec4<f32>(), at{z}_{y}_{k}, in{z}_{y});
#else
#if ZERO
    let v{z}_{y}_{k} = select(vec4<f32>(), at{z}_{y}_{k}, in{z}_{y} && in_x{k});
#else
#if WRAP || k == OWN || APART == 4
    let v{z}_{y}_{k} = at{z}_{y}_{k};
#else
#if APART == 1
    let edge{z}_{y}_{k} = vec4(at{z}_{y}_{k}[{select(0, 3, k > OWN)}u]);
#endif
#if APART == 2 && k < OWN
    let edge{z}_{y}_{k} = at{z}_{y}_{k}.xyxy;
#endif
#if APART == 2 && k > OWN
    let edge{z}_{y}_{k} = at{z}_{y}_{k}.zwzw;
#endif
#if APART == 3 && k < OWN
    let edge{z}_{y}_{k} = turned(at{z}_{y}_{k}.xyz, channel{k});
#endif
#if APART == 3 && k > OWN
    let edge{z}_{y}_{k} = turned(at{z}_{y}_{k}.yzw, channel{k});
#endif
    let v{z}_{y}_{k} = select(edge{z}_{y}_{k}, at{z}_{y}_{k}, in_x{k});
#endif
#endif
#endif
#end
#for x in LINE_X
    let a{z}_{y}_{x} = vec4(
#for i in FIRST + x * APART..FIRST + x * APART + 4
        v{z}_{y}_{i / 4}[{i % 4}u],
#end
    );
#end
    var along{z}_{y} = w0 * a{z}_{y}_0;
#for x in 1..LINE_X
    along{z}_{y} = fma(w{x}, a{z}_{y}_{x}, along{z}_{y});
#end
#for row in max(0, y + 1 - LINE_Y)..min(y + 1, ROWS)
#if LINE_Z > 1
    flat{z}_{row} = fma(w{LINE_X + y - row}, along{z}_{y}, flat{z}_{row});
#else
    sum{z}_{row} = fma(w{LINE_X + y - row}, along{z}_{y}, sum{z}_{row});
#endif
#end
#end
#if LINE_Z > 1
#for plane in max(0, z + 1 - LINE_Z)..min(z + 1, PLANES)
#for row in ROWS
    sum{plane}_{row} = fma(w{LINE_X + LINE_Y + z - plane}, flat{z}_{row}, sum{plane}_{row});
#end
#end
#endif
#end

#for z in PLANES
#for y in ROWS
    if p.y + {y}u < params.h && p.z + {z}u < params.d {
        put_group(p + vec3(0u, {y}u, {z}u), finish(p + vec3(0u, {y}u, {z}u), sum{z}_{y}));
    }
#end
#end
}
