// Kept are elements that differ from the one before, and the first: the heads of runs.
#import primitives/differs

fn keep4(at: vec4<u32>, bits: vec4<u32>) -> vec4<bool> {
    let near = max(at, vec4<u32>(1u)) - vec4<u32>(1u);
    let other = vec4<bool>(
        differs(bits.x, input[near.x]), differs(bits.y, input[near.y]), differs(bits.z, input[near.z]),
        differs(bits.w, input[near.w]),
    );
    return other | (at == vec4<u32>(0u));
}
