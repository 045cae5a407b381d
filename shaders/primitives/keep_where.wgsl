// Keeps elements for which the user's `fn keep(x: T) -> bool` returns true; by default those that are not 0.
#import primitives/keep_nonzero as predicate

fn keep4(at: vec4<u32>, bits: vec4<u32>) -> vec4<bool> {
    return vec4<bool>(
        keep(decode(bits.x, 0u)), keep(decode(bits.y, 0u)), keep(decode(bits.z, 0u)), keep(decode(bits.w, 0u)),
    );
}
