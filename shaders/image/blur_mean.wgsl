// Converts the sum of a window to a mean.
const STEP: u32 = 1u;

// Sums of four elements: vec4<u32> of bytes, exact; vec4<f32> of floats.
alias Total = vec4<f32>;

// First and last of the pixels around `i` that lie inside.
fn reach(i: u32, radius: u32, extent: u32) -> vec2<u32> {
    return vec2(max(i, radius) - radius, min(i + radius, extent - 1u));
}

// The means of the group at `p`; what lies behind the row does not count.
fn mean(p: vec3<u32>, total: Total) -> vec4<f32> {
#if WINDOW
    let area = vec4((2u * params.radius_x + 1u) * (2u * params.radius_y + 1u));
#else
    let x = (vec4(p.x) + vec4(0u, 1u, 2u, 3u)) / STEP;
    let first = max(x, vec4(params.radius_x)) - vec4(params.radius_x);
    let behind = min(x + vec4(params.radius_x + 1u), vec4(params.w / STEP));
    let y = reach(p.y, params.radius_y, params.h);
    let area = (max(behind, first + vec4(1u)) - first) * (y.y - y.x + 1u);
#endif
#if BYTES
#if WINDOW
    return vec4<f32>(total / area);
#else
    return vec4<f32>((2u * total + area) / (2u * area));
#endif
#else
    return total / vec4<f32>(area);
#endif
}
