// No activation.
fn activate(x: f32) -> f32 { return x; }
