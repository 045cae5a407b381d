// Conjugate gradients on shards: waits for the elements of r that other ranks write, and copies them behind this rank's.
// A thread takes a message: `sources` has the place of its first word, and how far apart its words are.
#import sparse/cg_shard_mail
#import sparse/cg_shard_state
#import workgroup/index

const WORKGROUP_SIZE: u32 = 256u;

struct Params { n: u32, messages: u32, half: u32, patience: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> state: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read> turn: array<u32>;
@group(0) @binding(3) var<storage, read> sources: array<u32>;
@group(0) @binding(4) var<storage, read> places: array<u32>;
@group(0) @binding(5) var<storage, read_write> mail: array<atomic<u32>>;
@group(0) @binding(6) var<storage, read_write> r: array<f32>;

// A place outside is padding.
fn put(at: u32, word: u32) {
    let place = places[at];
    if place < params.n { r[place] = bitcast<f32>(word); }
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn cg_shard_receive(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let message = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if message >= params.messages || atomicLoad(&state[STATUS]) != GOING { return; }
    let now = turn[0];
    let stride = sources[params.messages + message];
    let first = sources[message];
    if first >= params.half || stride >= params.half || first + 3u * stride >= params.half { return; }
    let at = (now & 1u) * params.half + first;
    var words = mail_read(at, stride, now);
    for (var i = 0u; i < params.patience && !words.whole; i++) {
        words = mail_read(at, stride, now);
    }
    if !words.whole {
        atomicStore(&state[STATUS], LATE);
        return;
    }
    put(message, words.a);
    put(params.messages + message, words.b);
    put(2u * params.messages + message, words.c);
}
