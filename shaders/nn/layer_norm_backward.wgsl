// With d = x - mean, s = 1 / sqrt(variance + eps) and g = dy gamma: s (g - mean(g) - d s^2 mean(g d)).
const CENTERED: bool = true;
