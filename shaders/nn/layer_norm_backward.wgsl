// The gradient of layer norm: with d = x - mean, s = 1 / sqrt(variance + eps) and g = dy gamma,
// dx = s (g - mean(g) - d s^2 mean(g d)).
const CENTERED: bool = true;
