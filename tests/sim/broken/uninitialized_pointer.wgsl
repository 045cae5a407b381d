// A private variable that a function adds to before anything is in it.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

var<private> sum: u32;

fn add(to: ptr<private, u32>, x: u32) {
    *to += x; // <- found
}

@compute @workgroup_size(32)
fn total(@builtin(local_invocation_index) lane: u32) {
    add(&sum, data[lane]);
    data[lane] = sum;
}
