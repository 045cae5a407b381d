// Copies the first k of each row of sorted positions, and the elements that stand there. One thread copies one of each.
// With OFFSETS rows lie between offsets; behind a row of fewer than k elements are zeros at no position.
#import dispatch/extent
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params { n: u32, k: u32, count: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> input: array<u32>;
@group(0) @binding(2) var<storage, read> positions: array<u32>;
@group(0) @binding(3) var<storage, read_write> values: array<u32>;
@group(0) @binding(4) var<storage, read_write> indices: array<u32>;
#if OFFSETS
@group(0) @binding(5) var<storage, read> offsets: array<u32>;
#endif

#put extent(params.count / params.k, 0u)

@compute @workgroup_size(WORKGROUP_SIZE)
fn top_k_rows_pick(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if at >= extent() * params.k { return; }
    let row = at / params.k;
#if OFFSETS
    let begin = min(offsets[row], params.n);
    var value = 0u;
    var position = 0xffffffffu;
    if at % params.k < max(min(offsets[row + 1u], params.n), begin) - begin {
        position = positions[begin + at % params.k];
        value = input[position];
    }
    values[at] = value;
    indices[at] = position;
#else
    let position = positions[row * params.n + at % params.k];
    values[at] = input[position];
    indices[at] = position - row * params.n;
#endif
}
