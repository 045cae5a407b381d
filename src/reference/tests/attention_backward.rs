use super::*;

/// Numbers between -1 and 1.
fn numbers(n: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..n).map(next).collect()
}

/// The sum of the outputs, each times `dy`: dy is its gradient with respect to the output.
fn loss(op: &AttentionBackward, [q, k, v]: &[Vec<f64>; 3], dy: &[f32]) -> f64 {
    let of = &op.forward;
    let (d, e) = (of.head_size, op.value_size);
    let row = |x: &[f64], row: usize, size: usize| x[row * size..][..size].to_vec();
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let of_row = |at: usize| {
        let (head, query) = (at / of.queries, at % of.queries);
        let dy: Vec<f64> = dy[at * e..][..e].iter().map(|x| f64::from(*x)).collect();
        let seen = (0..of.keys).filter(|&key| sees(of, query, key, of.keys));
        let both = seen.map(|key| {
            let at_key = head / of.group() * of.keys + key;
            let score = f64::from(of.factor()) * product(&row(q, at, d), &row(k, at_key, d));
            (score.exp(), score.exp() * product(&dy, &row(v, at_key, e)))
        });
        let (sum, weighted) = both.fold((0.0, 0.0), |all, both| (all.0 + both.0, all.1 + both.1));
        if sum == 0.0 { 0.0 } else { weighted / sum }
    };
    (0..of.batch * of.heads * of.queries).map(of_row).sum()
}

#[test]
fn gradients_match_finite_differences() {
    let new = AttentionBackward::new;
    for op in [
        new([2, 4, 3, 8], [2, 5]),
        new([1, 2, 5, 8], [1, 3]).causal(),
        new([1, 2, 4, 8], [2, 6]).causal().window(2).scale(0.7),
        new([1, 3, 6, 5], [1, 4]).value_size(3).window(2),
    ] {
        let of = &op.forward;
        let (d, e) = (of.head_size, op.value_size);
        let [q, k] = [of.heads * of.queries, of.kv_heads * of.keys];
        let numbers = |seed, len: usize| numbers(of.batch * len, seed);
        let (x, dy) = ([numbers(1, q * d), numbers(2, k * d), numbers(3, k * e)], numbers(4, q * e));
        let got = attention_backward(&op, &x[0], &x[1], &x[2], &dy);
        let x = x.map(|x| x.into_iter().map(f64::from).collect::<Vec<_>>());
        for (part, got) in got.iter().enumerate() {
            for (i, got) in got.iter().enumerate() {
                let step = 1e-4;
                let at = |by: f64| {
                    let mut x = x.clone();
                    x[part][i] += by;
                    loss(&op, &x, &dy)
                };
                let want = (at(step) - at(-step)) / (2.0 * step);
                assert!((f64::from(*got) - want).abs() < 1e-6, "{op:?}: {part} {i}: {got} {want}");
            }
        }
    }
}

#[test]
fn hidden_keys_get_zero_and_equal_scores_share() {
    // Two keys of equal score: the second query sees both.
    let op = AttentionBackward::new([1, 1, 2, 8], [1, 2]).causal();
    let (q, k) = ([0.0f32; 16], [0.0f32; 16]);
    let v = [[1.0f32; 8], [3.0; 8]].concat();
    let dy = [[1.0f32; 8], [2.0; 8]].concat();
    let [dq, dk, dv] = attention_backward(&op, &q, &k, &v, &dy);
    assert_eq!((dq, dk), (vec![0.0; 16], vec![0.0; 16]));
    assert_eq!(dv, [[2.0; 8], [1.0; 8]].concat());
}

#[test]
fn bounds_are_open_where_operands_are_not_finite() {
    let op = AttentionBackward::new([1, 2, 2, 8], [2, 2]).causal();
    let mut q = [0.5f32; 32];
    q[0] = f32::NAN;
    let x = [0.25f32; 32];
    let [dq, dk, _] = attention_backward(&op, &q, &x, &x, &x);
    let [bound, of_k, _] = attention_backward_bound(&op, &q, &x, &x, &x);
    assert!(dq[0].is_nan() && dk[0].is_nan() && !dq[8].is_nan() && !dk[8].is_nan());
    assert_eq!((bound[0], bound[8], of_k[8]), (0.0, f64::INFINITY, f64::INFINITY));
    assert!(bound[16] < 1e-4);
}
