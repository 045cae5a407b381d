// Tiles of 6 x 6 cells, B^T d B: 36 numbers each (Lavin and Gray, 2016), one matrix for each of the 36 places, with
// channels as rows and tiles as columns. Tiles overlap by two cells.
// One thread transforms the cells of one tile of one channel; a workgroup WORKGROUP_SIZE of them.
#import conv/conv_input
#import conv/conv_winograd_tiles

const PLACES: u32 = 6u;
@group(0) @binding(2) var<storage, read_write> transformed: array<f32>;

// B^T times a column.
fn change(d: array<f32, 6>) -> array<f32, 6> {
    let even = d[4] - 4.0 * d[2];
    let odd = d[3] - 4.0 * d[1];
    let near = d[4] - d[2];
    let far = 2.0 * (d[3] - d[1]);
    return array(4.0 * (d[0] - d[2]) + d[4] - d[2], even + odd, even - odd, near + far, near - far, 4.0 * (d[1] - d[3]) + d[5] - d[3]);
}

fn row_of(plane: u32, y: u32, x0: u32) -> array<f32, 6> {
    return array(
        cell(plane, y, x0),
        cell(plane, y, x0 + 1u),
        cell(plane, y, x0 + 2u),
        cell(plane, y, x0 + 3u),
        cell(plane, y, x0 + 4u),
        cell(plane, y, x0 + 5u),
    );
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn conv_winograd_input(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(workgroup) * WORKGROUP_SIZE + lane;
    if at >= params.count { return; }
    let channels = params.groups * params.channels_in;
    let tile = tile_of(at, channels);
    let plane = params.x_at + (tile.image * channels + tile.channel) * params.h * params.w;
    // A padding column is zeros: its rows lie beyond the last.
    let beyond = select(0u, 0x40000000u, tile.image >= params.all_images);
    let y = tile.y - params.pad_h + beyond;
    let x0 = tile.x - params.pad_w;
#for i in PLACES
    let row{i} = row_of(plane, y + {i}u, x0);
#end
#for i in PLACES
    let column{i} = change(array(row0[{i}], row1[{i}], row2[{i}], row3[{i}], row4[{i}], row5[{i}]));
#end
#for i in PLACES
    let place{i} = change(array(column0[{i}], column1[{i}], column2[{i}], column3[{i}], column4[{i}], column5[{i}]));
#put store_places({i})
#end
}
