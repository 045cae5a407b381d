// A private variable that only one branch sets.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;

var<private> last: array<u32, 2>;

@compute @workgroup_size(32)
fn keep(@builtin(local_invocation_index) lane: u32) {
#if !BROKEN
    last[lane % 2u] = 0u;
#endif
    if data[lane] > 3u {
        last[lane % 2u] = data[lane];
    }
    data[lane] = last[lane % 2u]; // <- BROKEN
}
