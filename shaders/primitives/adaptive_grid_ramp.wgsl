// A field, by default: from 0 at the left edge to 1 at the right one. You declare nothing.
fn field(p: vec2<f32>) -> f32 { return p.x; }
