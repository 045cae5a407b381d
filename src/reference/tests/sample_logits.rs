use super::*;

/// How often each token comes in many rows of the same logits.
fn shares(op: &SampleLogits, logits: &[f32]) -> Vec<f64> {
    let ([rows, classes], ..) = op.rule();
    let all: Vec<f32> = (0..rows).flat_map(|_| logits.to_vec()).collect();
    let mut counts = vec![0.0; classes];
    for tokens in sample_logits(op, &all) {
        counts[tokens[0] as usize] += 1.0 / rows as f64;
    }
    counts
}

#[test]
fn tokens_come_as_often_as_their_probability() {
    let logits = [0.0f32, 2f32.ln(), f32::NEG_INFINITY, 4f32.ln(), f32::NAN];
    let op = SampleLogits::new([20_000, 5]).seed(9);
    let near = |got: Vec<f64>, want: [f64; 5]| {
        assert!(got.iter().zip(want).all(|(got, want)| (got - want).abs() < 0.02), "{got:?} {want:?}");
    };
    near(shares(&op, &logits), [1.0 / 7.0, 2.0 / 7.0, 0.0, 4.0 / 7.0, 0.0]);
    near(shares(&op.clone().top_k(2), &logits), [0.0, 1.0 / 3.0, 0.0, 2.0 / 3.0, 0.0]);
    near(shares(&op.clone().top_p(0.5), &logits), [0.0, 0.0, 0.0, 1.0, 0.0]);
    near(shares(&op.clone().top_p(0.7), &logits), [0.0, 1.0 / 3.0, 0.0, 2.0 / 3.0, 0.0]);
    near(shares(&op.clone().temperature(0.5), &logits), [1.0 / 21.0, 4.0 / 21.0, 0.0, 16.0 / 21.0, 0.0]);
    near(shares(&op.temperature(0.0), &logits), [0.0, 0.0, 0.0, 1.0, 0.0]);
}
