// The modified rotation that makes the second of (sqrt(d1) x1, sqrt(d2) y1) 0. One thread. After C. L. Lawson,
// R. J. Hanson, D. R. Kincaid, F. T. Krogh, Basic linear algebra subprograms for Fortran usage (1979).
struct Params { pairs: u32 } // 1
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> d1: array<f32>;
@group(0) @binding(2) var<storage, read_write> d2: array<f32>;
@group(0) @binding(3) var<storage, read_write> x1: array<f32>;
@group(0) @binding(4) var<storage, read> y1: array<f32>;
@group(0) @binding(5) var<storage, read_write> param: array<f32>;

const GAMMA: f32 = 4096.0;
const LEAST: f32 = 0x1p-24;
const MOST: f32 = 0x1p24;
// Scalings after which every positive number is between the two.
const ROUNDS: u32 = 16u;

fn write_param(flag: f32, h: vec4<f32>) {
    param[0] = flag;
    param[1] = h.x;
    param[2] = h.z;
    param[3] = h.y;
    param[4] = h.w;
}

@compute @workgroup_size(1)
fn rotmg() {
    if params.pairs == 0u { return; }
    let x = x1[0];
    let y = y1[0];
    let given = vec2(d1[0], d2[0]);
    let p = given * vec2(x, y);
    let q = p * vec2(x, y);
    if given.x >= 0.0 && p.y == 0.0 {
        write_param(-2.0, vec4(1.0, 0.0, 0.0, 1.0));
        return;
    }
    // h11, h12, h21, h22; all 0 where there is no such rotation.
    var h = vec4(0.0);
    var flag = -1.0;
    var d = vec2(0.0);
    var length = 0.0;
    if given.x >= 0.0 {
        if abs(q.x) > abs(q.y) {
            let turned = vec2(p.y / p.x, -y / x);
            let u = 1.0 - turned.x * turned.y;
            if u > 0.0 {
                h = vec4(1.0, turned, 1.0);
                flag = 0.0;
                d = given / u;
                length = x * u;
            }
        } else if q.y >= 0.0 {
            let kept = vec2(p.x / p.y, x / y);
            let u = 1.0 + kept.x * kept.y;
            h = vec4(kept.x, 1.0, -1.0, kept.y);
            flag = 1.0;
            d = given.yx / u;
            length = y * u;
        }
    }
    for (var i = 0u; i < ROUNDS && d.x != 0.0 && (d.x <= LEAST || d.x >= MOST); i++) {
        let small = d.x <= LEAST;
        flag = -1.0;
        d.x *= select(LEAST, MOST, small);
        let by = select(GAMMA, 1.0 / GAMMA, small);
        length *= by;
        h = vec4(by * h.xy, h.zw);
    }
    for (var i = 0u; i < ROUNDS && d.y != 0.0 && (abs(d.y) <= LEAST || abs(d.y) >= MOST); i++) {
        let small = abs(d.y) <= LEAST;
        flag = -1.0;
        d.y *= select(LEAST, MOST, small);
        h = vec4(h.xy, select(GAMMA, 1.0 / GAMMA, small) * h.zw);
    }
    d1[0] = d.x;
    d2[0] = d.y;
    x1[0] = length;
    write_param(flag, h);
}
