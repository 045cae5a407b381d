// Measures the rate of f32 fused multiply-adds: 16 independent chains an invocation, 256 links each.
struct Params { a: f32, b: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;

const LINKS: u32 = 256u;

@compute @workgroup_size(256)
fn probe_fma(@builtin(global_invocation_id) id: vec3<u32>) {
    let a = vec4(params.a);
    let b = vec4(params.b);
    var w = vec4(f32(id.x));
    var x = w + 1.0;
    var y = w + 2.0;
    var z = w + 3.0;
    for (var i = 0u; i < LINKS; i++) {
        w = fma(w, a, b);
        x = fma(x, a, b);
        y = fma(y, a, b);
        z = fma(z, a, b);
    }
    let sum = w + x + y + z;
    output[id.x] = sum.x + sum.y + sum.z + sum.w;
}
