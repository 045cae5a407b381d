// Tiles of 4 x 4 outputs, A^T m A of 36 sums each (Lavin and Gray, 2016), bias and activation. One thread computes one
// tile of one channel; a workgroup WORKGROUP_SIZE of them. VECTORS: rows of the output are whole vec4s.
#import conv/conv_winograd_tiles
#import conv/conv_end

const PLACES: u32 = 6u;
const ROWS: u32 = 4u;
const OUTPUT_BINDING: u32 = 2u;
@group(0) @binding(1) var<storage, read> sums: array<f32>;
#if VECTORS
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<vec4<f32>>;
#else
@group(0) @binding(OUTPUT_BINDING) var<storage, read_write> output: array<f32>;
#endif

// A^T times a column.
fn join(m: array<f32, 6>) -> vec4<f32> {
    let near = m[1] + m[2];
    let far = m[3] + m[4];
    let slope = m[1] - m[2];
    let steep = m[3] - m[4];
    return vec4(m[0] + near + far, slope + 2.0 * steep, near + 4.0 * far, slope + 8.0 * steep + m[5]);
}

#if !VECTORS
fn put(at: u32, column: u32, sum: f32, channel: u32) {
    if column < params.q { output[at + column] = finished(sum, channel); }
}
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn conv_winograd_output(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(workgroup) * WORKGROUP_SIZE + lane;
    if at >= params.count { return; }
    let channels = params.groups * params.channels_out;
    let tile = tile_of(at, channels);
    if tile.image >= params.all_images { return; }
#for i in PLACES
    let from{i} = tile.to + {i}u * tile.apart;
    let column{i} = join(array(
        sums[from{i}],
        sums[from{i} + 6u * tile.apart],
        sums[from{i} + 12u * tile.apart],
        sums[from{i} + 18u * tile.apart],
        sums[from{i} + 24u * tile.apart],
        sums[from{i} + 30u * tile.apart],
    ));
#end
#for i in ROWS
    if tile.y + {i}u < params.p {
        let sum = join(array(column0[{i}], column1[{i}], column2[{i}], column3[{i}], column4[{i}], column5[{i}]));
        let to = params.y_at + ((tile.image * channels + tile.channel) * params.p + tile.y + {i}u) * params.q;
#if VECTORS
        output[(to + tile.x) / 4u] = vec4(
            finished(sum.x, tile.channel),
            finished(sum.y, tile.channel),
            finished(sum.z, tile.channel),
            finished(sum.w, tile.channel),
        );
#else
        put(to, tile.x, sum.x, tile.channel);
        put(to, tile.x + 1u, sum.y, tile.channel);
        put(to, tile.x + 2u, sum.z, tile.channel);
        put(to, tile.x + 3u, sum.w, tile.channel);
#endif
    }
#end
}
