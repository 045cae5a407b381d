// Brightness of RGB pixels, by words: one invocation turns three words, four pixels, into one.
#import image/grey_weigh

@compute @workgroup_size(WORKGROUP_SIZE)
fn grey_packed(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let at = workgroup_index(group) * WORKGROUP_SIZE + lane;
    if at >= (params.pixels - 1u) / 4u + 1u {
        return;
    }
    // The last pixels may fill only a part of them.
    let last = params.words - 1u;
    let a = input[3u * at];
    let b = input[min(3u * at + 1u, last)];
    let c = input[min(3u * at + 2u, last)];
    let first = weigh(a & 255u, (a >> 8u) & 255u, (a >> 16u) & 255u);
    let second = weigh(a >> 24u, b & 255u, (b >> 8u) & 255u);
    let third = weigh((b >> 16u) & 255u, b >> 24u, c & 255u);
    let fourth = weigh((c >> 8u) & 255u, (c >> 16u) & 255u, c >> 24u);
    put_word(at, first | (second << 8u) | (third << 16u) | (fourth << 24u));
}
