// Counts points by a bin of each axis. A thread bisects the edges of both for each point whose index differs from its
// own by a multiple of the number of threads. With PRIVATE a workgroup counts in its own memory and adds that at the
// end; else it counts by atomics in device memory.
#import dispatch/extent
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;
const CELLS: u32 = 4096u;

struct Axis {
    least: u32, // key of the lowest number that counts
    span: u32,  // keys from there to that of the highest
    first: u32, // place of the first edge
    edges: u32, // bins that a number can fall into
}
struct Params {
    x_axis: Axis,
    y_axis: Axis,
    n: u32,
    bins_y: u32,
    cells: u32,
    workgroups: u32, // that share the points
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<u32>;
@group(0) @binding(2) var<storage, read> y: array<u32>;
// Keys of the lowest number of each bin, of both axes.
@group(0) @binding(3) var<storage, read> edges: array<u32>;
@group(0) @binding(4) var<storage, read_write> counts: array<atomic<u32>>;

// Binding 5, if the device counts the points.
#put extent(params.n, 0u)

#if PRIVATE
var<workgroup> wg_counts: array<atomic<u32>, CELLS>;
#endif

const NOT_COUNTED: u32 = 4294967295u;

// The bin of a number. The key of a NaN lies beyond those of all numbers.
fn bin_of(bits: u32, axis: Axis) -> u32 {
    let key = bits ^ (bitcast<u32>(bitcast<i32>(bits) >> 31u) | 0x80000000u);
    if key - axis.least > axis.span { return NOT_COUNTED; }
    var begin = 1u;
    var end = axis.edges;
    while begin < end {
        let middle = (begin + end) / 2u;
        if edges[axis.first + middle] <= key { begin = middle + 1u; } else { end = middle; }
    }
    return begin - 1u;
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn histogram_2d(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let index = workgroup_index(group);
    if index >= params.workgroups { return; }
#if PRIVATE
    for (var cell = lane; cell < params.cells; cell += WORKGROUP_SIZE) { atomicStore(&wg_counts[cell], 0u); }
    workgroupBarrier();
#endif
    let n = extent();
    for (var at = index * WORKGROUP_SIZE + lane; at < n; at += params.workgroups * WORKGROUP_SIZE) {
        let bin_x = bin_of(x[at], params.x_axis);
        let bin_y = bin_of(y[at], params.y_axis);
        if bin_x != NOT_COUNTED && bin_y != NOT_COUNTED {
            let cell = bin_x * params.bins_y + bin_y;
#if PRIVATE
            atomicAdd(&wg_counts[cell], 1u);
#else
            atomicAdd(&counts[cell], 1u);
#endif
        }
    }
#if PRIVATE
    workgroupBarrier();
    for (var cell = lane; cell < params.cells; cell += WORKGROUP_SIZE) {
        let points = atomicLoad(&wg_counts[cell]);
        if points > 0u { atomicAdd(&counts[cell], points); }
    }
#endif
}
