// The fields of the example `adaptive`, over the unit square.
const TAU: f32 = 6.2831853;

// The sine of an angle in turns, reduced to the range where devices are accurate.
fn sin_turns(turns: f32) -> f32 { return sin(TAU * (turns - round(turns))); }

// Fading ripples around two centres.
fn waves(p: vec2<f32>) -> f32 {
    let a = distance(p, vec2<f32>(0.30, 0.36));
    let b = distance(p, vec2<f32>(0.76, 0.70));
    return 0.5 + 0.3 * sin_turns(16.0 * a) * exp(-5.0 * a) + 0.3 * sin_turns(26.0 * b) * exp(-8.0 * b);
}

// A spiral with three arms, tighter near the centre: sin(3 angle - 12 ln(radius)), by powers of a complex number.
fn vortex(p: vec2<f32>) -> f32 {
    let d = p - vec2<f32>(0.46, 0.53);
    let r2 = dot(d, d) + 0.001;
    let c = vec2<f32>(d.x * (d.x * d.x - 3.0 * d.y * d.y), d.y * (3.0 * d.x * d.x - d.y * d.y)) / (r2 * sqrt(r2));
    let turns = 6.0 * log(r2) / TAU;
    let wave = c.y * sin_turns(turns + 0.25) - c.x * sin_turns(turns);
    return 0.5 + 0.5 * wave * exp(-10.0 * r2);
}

fn spot(p: vec2<f32>, x: f32, y: f32, radius: f32) -> f32 {
    let d = (p - vec2<f32>(x, y)) / radius;
    return exp(-dot(d, d));
}

fn spots(p: vec2<f32>) -> f32 {
    return 0.9 * spot(p, 0.22, 0.74, 0.090) + 0.8 * spot(p, 0.62, 0.60, 0.150) + spot(p, 0.80, 0.22, 0.040)
        + 0.9 * spot(p, 0.35, 0.28, 0.020) + 0.7 * spot(p, 0.12, 0.15, 0.060) + spot(p, 0.90, 0.86, 0.012);
}

// A step a thousandth wide across a line with five lobes: 5 angles by powers of a complex number.
fn step_field(p: vec2<f32>) -> f32 {
    let d = p - vec2<f32>(0.5, 0.5);
    let r = max(length(d), 1e-6);
    let u = d / r;
    let x2 = u.x * u.x;
    let lobes = u.x * (16.0 * x2 * x2 - 20.0 * x2 + 5.0);
    return clamp((0.32 + 0.09 * lobes - r) * 1000.0 + 0.5, 0.0, 1.0);
}
