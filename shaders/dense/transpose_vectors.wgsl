// output[b, j, i] = input[b, i, j] for elements of 4 bytes and extents that are multiples of 4: all traffic in vec4s.
// One thread loads a block of 4 x 4, transposes it in registers, and stores it to the tile of 64 x 64 that its
// workgroup shares, from which rows of the output leave in whole. In workgroup memory the vec4s of a row are permuted
// by the row's block, so that neither side meets a bank twice: no padding, and exactly 16 KiB.
#import dense/transpose_params
#import dense/transpose_walk

const SIDE: u32 = 16u; // vec4s along a side of the tile

@group(0) @binding(1) var<storage, read> input: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> output: array<vec4<u32>>;

// Rows of the output.
var<workgroup> wg_tile: array<vec4<u32>, 4u * SIDE * SIDE>;

fn place(row: u32, vector: u32) -> u32 {
    return row * SIDE + (vector ^ (row / 4u));
}

@compute @workgroup_size(256)
fn transpose_vectors(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = tile_of(workgroup_index(group));
    if tile.matrix >= params.batch { return; }
    // Extents in vec4s, and sizes of matrices too.
    let rows = params.m / 4u;
    let cols = params.n / 4u;
    let base = tile.matrix * params.m * cols;
    let origin = vec2(tile.row, tile.col) * SIDE;
    let x = lane % SIDE;
    let y = lane / SIDE;

    // Block (y, x) of the tile: it lies in the matrix as a whole or not at all.
    if origin.x + y < rows && origin.y + x < cols {
        let source = base + 4u * (origin.x + y) * cols + origin.y + x;
        let a = input[source];
        let b = input[source + cols];
        let c = input[source + 2u * cols];
        let d = input[source + 3u * cols];
        wg_tile[place(4u * x, y)] = vec4(a.x, b.x, c.x, d.x);
        wg_tile[place(4u * x + 1u, y)] = vec4(a.y, b.y, c.y, d.y);
        wg_tile[place(4u * x + 2u, y)] = vec4(a.z, b.z, c.z, d.z);
        wg_tile[place(4u * x + 3u, y)] = vec4(a.w, b.w, c.w, d.w);
    }
    workgroupBarrier();

    // vec4 x of rows y, y + 16, y + 32 and y + 48 of the output's tile.
    let row = 4u * origin.y + y;
    let col = origin.x + x;
    let to = base + row * rows + col;
    if col < rows {
        if row + 3u * SIDE < params.n {
            let a = wg_tile[place(y, x)];
            let b = wg_tile[place(y + SIDE, x)];
            let c = wg_tile[place(y + 2u * SIDE, x)];
            let d = wg_tile[place(y + 3u * SIDE, x)];
            output[to] = a;
            output[to + SIDE * rows] = b;
            output[to + 2u * SIDE * rows] = c;
            output[to + 3u * SIDE * rows] = d;
        } else {
            for (var i = 0u; row + i < params.n; i += SIDE) {
                output[to + i * rows] = wg_tile[place(y + i, x)];
            }
        }
    }
}
