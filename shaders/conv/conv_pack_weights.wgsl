// Weights of f16 as the rows of a matrix: for each filter its cells, and for each cell its channels, padded with zeros
// to whole pieces of 8. `columns` is the length of a row. Only some cells are taken: p x q, from (pad_h, pad_w) on,
// (stride_h, stride_w) apart.
// One thread makes one piece; a workgroup WORKGROUP_SIZE of them. Requires f16.
#import conv/conv_params
#import conv/conv_weight as weight

@group(0) @binding(2) var<storage, read_write> packed: array<vec4<f16>>;

@compute @workgroup_size(WORKGROUP_SIZE)
fn conv_pack_weights(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(workgroup) * WORKGROUP_SIZE + lane;
    if at >= params.count { return; }
    let pieces = params.columns / 8u;
    let row = at / pieces;
    let group = row / params.channels_out;
    let to = row % params.channels_out;
    let of_cell = pieces / (params.p * params.q);
    let cell = at % pieces / of_cell;
    let row_of_cell = cell / params.q * params.stride_h + params.pad_h;
    let tap = row_of_cell * params.s + cell % params.q * params.stride_w + params.pad_w;
    let first = at % of_cell * 8u;
#for half in 2
    var four_{half} = vec4<f16>();
#for i in 4
    if first + {4 * half + i}u < params.channels_in {
        four_{half}[{i}u] = f16(weight(group, to, first + {4 * half + i}u, tap));
    }
#end
    packed[at * 2u + {half}u] = four_{half};
#end
}
