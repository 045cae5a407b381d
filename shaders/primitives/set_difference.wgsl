// Keeps elements that have no partner.
#import primitives/set_partner

fn keep4(at: vec4<u32>, bits: vec4<u32>) -> vec4<bool> { return !partners4(at, bits); }
