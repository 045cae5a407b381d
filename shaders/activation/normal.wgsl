// 1 - Phi(a) for a >= 0, with the normal distribution Phi. exp(a^2 / 2) (1 - Phi(a)) = t P(t), t = 1 / (1 + a / 4):
// the form of Hastings (Abramowitz and Stegun 7.1.26), of degree 10, fitted here for relative error 3.4e-8.
fn normal_tail(a: f32) -> f32 {
    let t = 1.0 / (1.0 + 0.25 * a);
    var p = 0.019782422;
    p = p * t - 0.08087913;
    p = p * t + 0.09560041;
    p = p * t - 0.03172082;
    p = p * t + 0.063701026;
    p = p * t + 0.058974493;
    p = p * t + 0.08160324;
    p = p * t + 0.09346634;
    p = p * t + 0.09973643;
    p = p * t + 0.09973557;
    return t * (p * exp(-0.5 * a * a));
}
