// A single-pass scan by look-back that waits for the previous tile without a fallback.
const SIZE = 64u;
@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
// One more than the sum up to the end of each tile; 0 is not ready.
@group(0) @binding(2) var<storage, read_write> posts: array<atomic<u32>>;

var<workgroup> wg_sums: array<u32, SIZE>;
var<workgroup> wg_before: u32;

fn tile_sum(tile: u32) -> u32 {
    var sum = 0u;
    for (var i = 0u; i < SIZE; i++) {
        sum += input[tile * SIZE + i];
    }
    return sum;
}

@compute @workgroup_size(SIZE)
fn scan(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = group.x;
    wg_sums[lane] = input[tile * SIZE + lane];
    for (var stride = 1u; stride < SIZE; stride *= 2u) {
        workgroupBarrier();
        let other = select(0u, wg_sums[max(lane, stride) - stride], lane >= stride);
        workgroupBarrier();
        wg_sums[lane] += other;
    }
    workgroupBarrier();
    if lane == 0u {
        var before = 0u;
        if tile > 0u {
#if BROKEN
            loop {
                let post = atomicLoad(&posts[tile - 1u]); // <- BROKEN
                if post > 0u {
                    before = post - 1u;
                    break;
#else
            var look = tile;
            var spins = 0u;
            while look > 0u {
                let post = atomicLoad(&posts[look - 1u]);
                if post > 0u {
                    before += post - 1u;
                    break;
                }
                spins++;
                if spins > 8u {
                    look -= 1u;
                    before += tile_sum(look);
#endif
                }
            }
        }
        atomicStore(&posts[tile], 1u + before + wg_sums[SIZE - 1u]);
        wg_before = before;
    }
    output[tile * SIZE + lane] = workgroupUniformLoad(&wg_before) + wg_sums[lane];
}
