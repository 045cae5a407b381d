// Keeps elements with a nonzero flag.
@group(0) @binding(2) var<storage, read> flags: array<u32>;

fn keep4(at: vec4<u32>, bits: vec4<u32>) -> vec4<bool> {
    return vec4<u32>(flags[at.x], flags[at.y], flags[at.z], flags[at.w]) != vec4<u32>(0u);
}
