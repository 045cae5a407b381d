// The rotation that takes (a, b) to (r, 0): a becomes r, b the number z from which c and s follow. One thread. After
// E. Anderson, Safe scaling in the level 1 BLAS (2017).
struct Params { pairs: u32 } // 1
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> a: array<f32>;
@group(0) @binding(2) var<storage, read_write> b: array<f32>;
@group(0) @binding(3) var<storage, read_write> rotation: array<f32>;

@compute @workgroup_size(1)
fn rotg() {
    if params.pairs == 0u { return; }
    let x = a[0];
    let y = b[0];
    // r, z, c and s.
    var result = vec4(x, 0.0, 1.0, 0.0);
    if y != 0.0 {
        if x == 0.0 {
            result = vec4(y, 1.0, 0.0, 1.0);
        } else {
            let x_is_larger = abs(x) > abs(y);
            let larger = select(y, x, x_is_larger);
            let ratio = select(x, y, x_is_larger) / larger;
            let stretch = sqrt(1.0 + ratio * ratio);
            let major = 1.0 / stretch;
            let minor = ratio / stretch;
            let c = select(minor, major, x_is_larger);
            let s = select(major, minor, x_is_larger);
            // A cosine that a device takes for 0 counts as 0.
            var z = s;
            if !x_is_larger { z = select(stretch / ratio, 1.0, c == 0.0); }
            result = vec4(larger * stretch, z, c, s);
        }
    }
    a[0] = result.x;
    b[0] = result.y;
    rotation[0] = result.z;
    rotation[1] = result.w;
}
