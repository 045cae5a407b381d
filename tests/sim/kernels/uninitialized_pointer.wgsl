// A function adds to a private variable before its first write.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

var<private> sum: u32;

fn add(to: ptr<private, u32>, x: u32) {
    *to += x; // <- BROKEN
}

#if !BROKEN
fn add_here(to: ptr<function, u32>, x: u32) {
    *to += x;
}

#endif
@compute @workgroup_size(32)
fn total(@builtin(local_invocation_index) lane: u32) {
#if BROKEN
    add(&sum, data[lane]);
    data[lane] = sum;
#else
    sum = 0u;
    add(&sum, data[lane]);
    var here: u32;
    add_here(&here, sum);
    data[lane] = here;
#endif
}
