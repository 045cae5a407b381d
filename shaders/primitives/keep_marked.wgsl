// Keeps elements with a mark: bit i % 32 of word i / 32 for element i.
@group(0) @binding(2) var<storage, read> marks: array<u32>;

fn is_marked(i: u32) -> bool { return ((marks[i / 32u] >> (i % 32u)) & 1u) != 0u; }

fn keep4(at: vec4<u32>, bits: vec4<u32>) -> vec4<bool> {
    return vec4<bool>(is_marked(at.x), is_marked(at.y), is_marked(at.z), is_marked(at.w));
}
