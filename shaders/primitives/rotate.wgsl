// The elements from `by` on, then those before it.
#import primitives/elements

fn made(i: u32) -> u32 {
    let n = extent();
#if LIMITED
    let by = bitcast<i32>(params.by);
    let places = u32(abs(by)) % n;
    let left = select(n - places, places, by < 0);
#else
    let left = n - params.by;
#endif
    return bits_of(select(i - left, i + n - left, i < left));
}

@compute @workgroup_size(WORKGROUP_SIZE)
fn rotate(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    make_words(workgroup_index(group), lane);
}
