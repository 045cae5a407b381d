// Packs a factor of a matrix product for cooperative matrices: f16, rows of multiples of eight elements, zeros
// outside the matrix. With LOW each element, scaled by the power of two of its row or (with POWER_OF_COLUMN)
// column, becomes two: the nearest f16 and the remainder.
// One thread packs eight elements; a workgroup WORKGROUP_SIZE times as many. Requires f16.
#import workgroup/index
#if LOW
#import dense/gemm_power
#endif
enable f16;

alias T = f32;

const WORKGROUP_SIZE: u32 = 256u;

struct Params {
    rows: u32, cols: u32, ld: u32,
    // The size of the packed matrix.
    pieces: u32, pieces_of_row: u32,
    // The first magnitude of its rows or columns.
    first_magnitude: u32,
}
@group(0) @binding(0) var<uniform> params: Params;

#if VEC4S
@group(0) @binding(1) var<storage, read> input: array<vec4<T>>;
#else
@group(0) @binding(1) var<storage, read> input: array<T>;
#endif
@group(0) @binding(2) var<storage, read_write> packed: array<vec4<f16>>;
#if LOW
@group(0) @binding(3) var<storage, read_write> packed_low: array<vec4<f16>>;
@group(0) @binding(4) var<storage, read> magnitudes: array<u32>;
#endif

#if !VEC4S
fn element(row: u32, col: u32) -> f32 {
    if col >= params.cols { return 0.0; }
    return f32(input[row * params.ld + col]);
}
#endif

fn four(row: u32, col: u32) -> vec4<f32> {
    if row >= params.rows || col >= params.cols { return vec4<f32>(); }
#if VEC4S
    return vec4<f32>(input[(row * params.ld + col) / 4u]);
#else
    return vec4(element(row, col), element(row, col + 1u), element(row, col + 2u), element(row, col + 3u));
#endif
}

#if LOW
fn scaled(x: f32, row: u32, col: u32) -> f32 {
#if POWER_OF_COLUMN
    let line = min(col, params.cols - 1u);
#else
    let line = min(row, params.rows - 1u);
#endif
    return times_power(x, power_of(magnitudes[params.first_magnitude + line]));
}

fn finite(x: vec4<f32>) -> vec4<bool> { return (bitcast<vec4<u32>>(x) & vec4(0x7fffffffu)) < vec4(0x7f800000u); }

// Rounds to the eleven bits of f16, ties to even, by integers: drivers reduce f32(f16(x)) to x.
fn rounded(x: vec4<f32>) -> vec4<f32> {
    let bits = bitcast<vec4<u32>>(x);
    return bitcast<vec4<f32>>((bits + 0xfffu + ((bits >> vec4(13u)) & vec4(1u))) & vec4(0xffffe000u));
}
#endif

fn pack_four(row: u32, col: u32, to: u32) {
    let x = four(row, col);
#if LOW
    let y = vec4(
        scaled(x.x, row, col),
        scaled(x.y, row, col + 1u),
        scaled(x.z, row, col + 2u),
        scaled(x.w, row, col + 3u),
    );
    let high = select(y, rounded(y), finite(y));
    packed[to] = vec4<f16>(high);
    // Infinity minus itself is NaN.
    packed_low[to] = vec4<f16>(select(vec4<f32>(), y - high, finite(y)));
#else
    packed[to] = vec4<f16>(x);
#endif
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn gemm_pack(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let piece = workgroup_index(workgroup) * WORKGROUP_SIZE + local;
    if piece >= params.pieces { return; }
    let row = piece / params.pieces_of_row;
    let col = piece % params.pieces_of_row * 8u;
    pack_four(row, col, 2u * piece);
    pack_four(row, col + 4u, 2u * piece + 1u);
}
