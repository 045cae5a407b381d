use super::*;

/// The probabilities that a table gives.
fn shares(table: &[[u32; 2]]) -> Vec<f64> {
    let mut shares = vec![0.0; table.len()];
    for (k, [own, other]) in table.iter().enumerate() {
        let own = f64::from(*own) / 4294967296.0;
        shares[k] += own / table.len() as f64;
        shares[*other as usize] += (1.0 - own) / table.len() as f64;
    }
    shares
}

#[test]
fn tables_give_the_probabilities() {
    let skewed: Vec<f64> = (1..1000).map(|k| 1.0 / f64::from(k)).collect();
    for weights in [&[1.0][..], &[1.0, 1.0], &[0.0, 3.0, 1.0], &[1e-9, 1.0, 1e9], &[0.0, 0.0, 5.0], &skewed] {
        let sum: f64 = weights.iter().sum();
        for (got, w) in shares(&alias_table(weights)).iter().zip(weights) {
            assert!((got - w / sum).abs() <= weights.len() as f64 * 2f64.powi(-32), "{weights:?}");
            assert!(*w > 0.0 || *got == 0.0, "{weights:?}");
        }
    }
    assert_eq!(alias_table(&[1.0, 3.0]), [[1 << 31, 1], [0, 1]]);
}
