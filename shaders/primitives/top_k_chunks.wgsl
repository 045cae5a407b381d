// First step of top-k by chunks: finds the best number of each chunk of consecutive elements, in one reading of the
// input. TEAM threads take a chunk, LOADS vec4 each, and join by shuffles (SUBGROUPS) or in workgroup memory. One
// workgroup takes tiles of TEAMS chunks in steps of the grid.
#import dispatch/extent
#import primitives/sort_key
#import workgroup/index
#if SUBGROUPS
enable subgroups;
#endif

const WORKGROUP_SIZE: u32 = 256u;
const TEAM: u32 = 32u;
const LOADS: u32 = 4u; // a multiple of 4
const TEAMS: u32 = WORKGROUP_SIZE / TEAM;
const CHUNK: u32 = 4u * TEAM * LOADS;

struct Params {
    n: u32,           // elements of the part
    chunks: u32,      // of the part; the last one may be partly filled
    first_chunk: u32, // chunks before the part
    workgroups: u32,
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> vec4s: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> input: array<u32>;
@group(0) @binding(3) var<storage, read_write> bests: array<u32>;

#put extent(params.n, params.first_chunk * CHUNK)

fn best_of_four(keys: vec4<u32>) -> u32 {
    return min(min(order(keys.x), order(keys.y)), min(order(keys.z), order(keys.w)));
}

// Of a chunk that lies whole in the part.
fn best_of_whole(chunk: u32, lane: u32) -> u32 {
    var best = 0xffffffffu;
    var at = chunk * (CHUNK / 4u) + lane;
    for (var i = 0u; i < LOADS; i += 4u) {
        let a = vec4s[at];
        let b = vec4s[at + TEAM];
        let c = vec4s[at + 2u * TEAM];
        let d = vec4s[at + 3u * TEAM];
        let ab = min(best_of_four(a), best_of_four(b));
        let cd = min(best_of_four(c), best_of_four(d));
        best = min(best, min(ab, cd));
        at += 4u * TEAM;
    }
    return best;
}

fn best_of_rest(chunk: u32, lane: u32) -> u32 {
    var best = 0xffffffffu;
    let there = extent();
    for (var at = chunk * CHUNK + lane; at < there; at += TEAM) { best = min(best, order(input[at])); }
    return best;
}

#if !SUBGROUPS
var<workgroup> wg_bests: array<u32, WORKGROUP_SIZE>;
#endif

@compute @workgroup_size(WORKGROUP_SIZE)
fn top_k_chunks(
    @builtin(workgroup_id) group: vec3<u32>,
#if SUBGROUPS
    @builtin(subgroup_invocation_id) sub_lane: u32,
    @builtin(subgroup_size) sub_size: u32,
    @builtin(subgroup_id) sub_id: u32,
#else
    @builtin(local_invocation_index) invocation: u32,
#endif
) {
    let first = workgroup_index(group);
    if first >= params.workgroups { return; }
#if SUBGROUPS
    // A team lies in one subgroup, whatever local_invocation_index does.
    let invocation = sub_id * sub_size + sub_lane;
#endif
    let lane = invocation % TEAM;
    let whole = extent() / CHUNK;
    for (var tile = first; tile * TEAMS < params.chunks; tile += params.workgroups) {
        let chunk = tile * TEAMS + invocation / TEAM;
        var best = 0xffffffffu;
        if chunk < whole {
            best = best_of_whole(chunk, lane);
        } else if chunk < params.chunks {
            best = best_of_rest(chunk, lane);
        }
#if SUBGROUPS
        for (var mask = TEAM / 2u; mask > 0u; mask /= 2u) { best = min(best, subgroupShuffleXor(best, mask)); }
#else
        if TEAM > 1u {
            workgroupBarrier();
            wg_bests[invocation] = best;
            for (var step = TEAM / 2u; step > 0u; step /= 2u) {
                workgroupBarrier();
                if lane < step {
                    wg_bests[invocation] = min(wg_bests[invocation], wg_bests[invocation + step]);
                }
            }
            best = wg_bests[invocation];
        }
#endif
        if lane == 0u && chunk < params.chunks { bests[params.first_chunk + chunk] = best; }
    }
}
