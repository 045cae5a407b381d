// Conjugate gradients on shards: writes the elements of r that other ranks need to memory that they read. A thread writes
// three elements: those at its places, of which each plane of `places` has one.
#import sparse/cg_shard_mail
#import sparse/cg_shard_state
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params { n: u32, messages: u32, begin: u32, half: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> state: array<u32>;
@group(0) @binding(2) var<storage, read> turn: array<u32>;
@group(0) @binding(3) var<storage, read> places: array<u32>;
@group(0) @binding(4) var<storage, read> r: array<f32>;
@group(0) @binding(5) var<storage, read_write> mail: array<atomic<u32>>;

// A place outside is padding.
fn element(at: u32) -> u32 {
    let place = places[at];
    if place >= params.n { return 0u; }
    return bitcast<u32>(r[place]);
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn cg_shard_send(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let message = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if message >= params.messages || state[STATUS] != GOING { return; }
    let now = turn[0];
    let at = (now & 1u) * params.half + params.begin + message;
    let a = element(message);
    let b = element(params.messages + message);
    let c = element(2u * params.messages + message);
    mail_post(at, params.messages, a, b, c, now);
}
