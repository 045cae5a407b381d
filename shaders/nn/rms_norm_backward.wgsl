// With s = 1 / sqrt(mean of squares + eps) and g = dy gamma: s (g - x s^2 mean(g x)).
const CENTERED: bool = false;
