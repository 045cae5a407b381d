// Keeps elements that differ from the one before, and the first: the heads of runs. With ORDERED the element before
// comes from the lane below, and steps of four items run in order.
#import primitives/differs

#if ORDERED
// What lies before the items of the next step.
var<private> item_before: u32;

fn begin_keeping(first: u32) { item_before = load1(min(max(first, 1u), params.n) - 1u); }

// The lowest lane gets what the next item has before it, and keeps it until then.
fn before4(at: vec4<u32>, bits: vec4<u32>) -> vec4<u32> {
    let below = subgroupShuffle(bits, (place_in_subgroup + lanes - 1u) % lanes);
    let before = select(below, vec4<u32>(item_before, below.xyz), place_in_subgroup == 0u);
    item_before = below.w;
    return before;
}
#else
fn before4(at: vec4<u32>, bits: vec4<u32>) -> vec4<u32> { return load4(max(at, vec4<u32>(1u)) - vec4<u32>(1u)); }
#endif

fn keep4(at: vec4<u32>, bits: vec4<u32>) -> vec4<bool> {
    let before = before4(at, bits);
    let other = vec4<bool>(
        differs(bits.x, before.x), differs(bits.y, before.y), differs(bits.z, before.z), differs(bits.w, before.w),
    );
    return other | (at == vec4<u32>(0u));
}
