// A step of an all-reduce between two devices, over memory of the host that both reach. A thread copies elements of
// `data` to `sent`, combines others with what has `arrived` and writes the results to `data` and `sums`, and takes
// others from `taken`: both directions of the bus are busy at once.
#import element/f32 as element
#import elementwise/zip_functions as function
#import workgroup/index

struct Params {
    send: u32,    // first element of each kind, and how many
    sending: u32,
    sum: u32,
    summing: u32,
    take: u32,
    taking: u32,
    stride: u32,  // threads
}
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> data: array<u32>;
@group(0) @binding(2) var<storage, read_write> sent: array<u32>;
@group(0) @binding(3) var<storage, read> arrived: array<u32>;
@group(0) @binding(4) var<storage, read_write> sums: array<u32>;
@group(0) @binding(5) var<storage, read> taken: array<u32>;

const WORKGROUP_SIZE: u32 = 256u;

@compute @workgroup_size(WORKGROUP_SIZE)
fn pass_sums(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let longest = max(params.sending, max(params.summing, params.taking));
    for (var i = workgroup_index(group) * WORKGROUP_SIZE + lane; i < longest; i += params.stride) {
        if i < params.sending { sent[i] = data[params.send + i]; }
        if i < params.taking { data[params.take + i] = taken[i]; }
        if i < params.summing {
            let combined = zip(decode(data[params.sum + i], 0u), decode(arrived[i], 0u));
            let word = encode(combined, combined);
            data[params.sum + i] = word;
            sums[i] = word;
        }
    }
}
