// Tiles of 4 x 4 gradients, A d A^T: 36 numbers each, like those of cells. A padding column is zeros.
// One thread transforms one tile of one channel; a workgroup WORKGROUP_SIZE of them.
#import conv/conv_winograd_tiles

const PLACES: u32 = 6u;
const ROWS: u32 = 4u;
@group(0) @binding(1) var<storage, read> gradients: array<f32>;
@group(0) @binding(2) var<storage, read_write> transformed: array<f32>;

// A times a column.
fn spread(d: vec4<f32>) -> array<f32, 6> {
    let even = d.x + d.z;
    let odd = d.y + d.w;
    let near = d.x + 4.0 * d.z;
    let far = 2.0 * d.y + 8.0 * d.w;
    return array(d.x, even + odd, even - odd, near + far, near - far, d.w);
}

fn gradient(plane: u32, tile: Tile, row: u32, column: u32) -> f32 {
    let y = tile.y + row;
    let x = tile.x + column;
    if tile.image >= params.all_images || y >= params.p || x >= params.q { return 0.0; }
    return gradients[plane + y * params.q + x];
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn conv_backward_weights_tiles(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(workgroup) * WORKGROUP_SIZE + lane;
    if at >= params.count { return; }
    let channels = params.groups * params.channels_out;
    let tile = tile_of(at, channels);
    let plane = params.y_at + (tile.image * channels + tile.channel) * params.p * params.q;
#for i in ROWS
    let column{i} = spread(vec4(
        gradient(plane, tile, 0u, {i}u),
        gradient(plane, tile, 1u, {i}u),
        gradient(plane, tile, 2u, {i}u),
        gradient(plane, tile, 3u, {i}u),
    ));
#end
#for i in PLACES
    let place{i} = spread(vec4(column0[{i}], column1[{i}], column2[{i}], column3[{i}]));
#put store_places({i})
#end
}
