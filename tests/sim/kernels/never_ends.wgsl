// A step of 0 never reaches the end.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

@compute @workgroup_size(32)
fn walk(@builtin(local_invocation_index) lane: u32) {
    var at = 0u;
    while at < 100u { // <- BROKEN
#if BROKEN
        at += data[lane] % 2u;
#else
        at += 1u + data[lane] % 2u;
#endif
    }
    data[lane] = at;
}
