// The gradient of RMS norm: with s = 1 / sqrt(mean of squares + eps) and g = dy gamma, dx = s (g - x s^2 mean(g x)).
const CENTERED: bool = false;
