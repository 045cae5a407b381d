use super::*;

mod attention {
    use super::*;
    use crate::attention::Paging;

    const NONE: AttentionInputs<'static> = AttentionInputs { table: None, lengths: None, mask: None };

    /// Returns rows of 8 elements, of which all but the first are 0.
    fn firsts(x: &[f32]) -> Vec<f32> {
        x.iter().flat_map(|&x| [x, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]).collect()
    }

    fn first(op: &Attention, q: &[f32], k: &[f32], v: &[f32], inputs: AttentionInputs<'_>) -> Vec<f32> {
        attention(op, &firsts(q), &firsts(k), &firsts(v), inputs).into_iter().step_by(8).collect()
    }

    #[test]
    fn equal_scores_give_the_mean_of_visible_values() {
        let (q, k, v) = (&[0.0; 3], &[0.0; 4], &[1.0, 2.0, 6.0, 7.0]);
        let op = Attention::new([1, 1, 3, 8], [1, 4]);
        assert_eq!(first(&op, q, k, v, NONE), [4.0; 3]);
        assert_eq!(first(&op.clone().causal(), q, k, v, NONE), [1.5, 3.0, 4.0]);
        assert_eq!(first(&op.clone().causal().window(1), q, k, v, NONE), [2.0, 6.0, 7.0]);
        assert_eq!(first(&op.clone().window(2), q, k, v, NONE), [3.0, 5.0, 6.5]);
        let inputs = AttentionInputs { lengths: Some(&[2]), ..NONE };
        assert_eq!(first(&op.clone().causal().lengths(), q, k, v, inputs), [0.0, 1.0, 1.5]);
        let inf = f32::NEG_INFINITY;
        let mask = [0.0, inf, inf, inf, inf, inf, inf, inf, inf, 0.0, 0.0, inf];
        let inputs = AttentionInputs { mask: Some(&mask), ..NONE };
        assert_eq!(first(&op.masked([1, 1]), q, k, v, inputs), [1.0, 0.0, 4.0]);
    }

    #[test]
    fn weights_follow_scores_and_heads_share_keys() {
        let op = Attention::new([1, 2, 1, 8], [1, 2]).scale(1.0);
        // Weights 3 to 1.
        let got = first(&op, &[1.0, 0.0], &[3f32.ln(), 0.0], &[4.0, 8.0], NONE);
        assert!((got[0] - 5.0).abs() < 1e-6 && got[1] == 6.0, "{got:?}");
    }

    #[test]
    fn missing_pages_are_hidden() {
        let op = Attention::new([2, 1, 1, 8], [1, 20]).paged(Paging { tokens: 16, pages: 2 });
        let v: Vec<f32> = (0..32).map(|i| i as f32).collect();
        let inputs = AttentionInputs { table: Some(&[1, 0, 0, 9]), ..NONE };
        let got = first(&op, &[0.0; 2], &[0.0; 32], &v, inputs);
        assert_eq!(got, [(376.0 + 6.0) / 20.0, 7.5]);
    }

    #[test]
    fn undefined_softmax_is_nan() {
        let op = Attention::new([1, 1, 1, 8], [1, 2]);
        assert!(first(&op, &[1.0], &[f32::INFINITY, 1.0], &[1.0, 1.0], NONE)[0].is_nan());
        assert_eq!(first(&op, &[1.0], &[f32::NEG_INFINITY, 1.0], &[1.0, 3.0], NONE), [3.0]);
    }
}

mod kv_append {
    use super::*;
    use crate::attention::Paging;

    #[test]
    fn rows_follow_the_existing_ones() {
        let op = KvAppend::new([2, 1, 2, 8], 3);
        let new: Vec<f32> = (0..32).map(|i| (i / 8 + 1) as f32).collect();
        let mut cache = vec![0f32; 48];
        kv_append(&op, &new, &[1, 2], None, &mut cache);
        let firsts: Vec<f32> = cache.into_iter().step_by(8).collect();
        assert_eq!(firsts, [0.0, 1.0, 2.0, 0.0, 0.0, 3.0]);
    }

    #[test]
    fn missing_pages_are_skipped() {
        let op = KvAppend::new([1, 1, 2, 8], 32).paged(Paging { tokens: 16, pages: 2 });
        let mut cache = vec![0f32; 256];
        kv_append(&op, &[5f32; 16], &[15], Some(&[1, 7]), &mut cache);
        assert_eq!(cache.iter().position(|x| *x == 5.0), Some(31 * 8));
        assert_eq!(cache.iter().filter(|x| **x == 5.0).count(), 8);
    }

    #[test]
    fn quantised_rows_are_scaled_by_their_largest() {
        let x = [12.7f32, 0.05, -0.15, 0.0, 0.0, 0.0, 0.0, 0.0];
        let got = stored(KvType::Int8, &x);
        assert!((got[0] - 12.7).abs() < 1e-5 && (got[2] + 0.2).abs() < 0.11, "{got:?}");
        assert_eq!(stored(KvType::Fp8, &[448.0, 1.0, 17.0])[..], [448.0, 1.0, 16.0]);
        assert_eq!(stored(KvType::Int8, &[0.0; 3]), [0.0; 3]);
    }
}
