use super::*;

mod reduce {
    use super::*;

    #[test]
    fn rows_by_hand() {
        let x = [3.0f32, -1.0, 2.0, 2.0, 5.0, 5.0];
        let of = |op| reduce(&op, 2, 3, &x).unwrap();
        assert_eq!(of(Operator::Sum), [4.0, 12.0]);
        assert_eq!(of(Operator::Prod), [-6.0, 50.0]);
        assert_eq!(of(Operator::Min), [-1.0, 2.0]);
        assert_eq!(of(Operator::Max), [3.0, 5.0]);
        assert_eq!(of(Operator::ArgMin), [1.0, 0.0]);
        assert_eq!(of(Operator::ArgMax), [0.0, 1.0]);
    }

    #[test]
    fn integers_wrap_and_bytes_widen() {
        assert_eq!(reduce(&Operator::Sum, 1, 2, &[u32::MAX, 2]).unwrap(), [1.0]);
        assert_eq!(reduce(&Operator::Sum, 1, 2, &[i32::MAX, 1]).unwrap(), [f64::from(i32::MIN)]);
        assert_eq!(reduce(&Operator::Prod, 1, 2, &[65_536u32, 65_536]).unwrap(), [0.0]);
        assert_eq!(reduce(&Operator::Sum, 1, 2, &[200u8, 100]).unwrap(), [300.0]);
        assert_eq!(reduce(&Operator::Prod, 1, 2, &[-100i8, 100]).unwrap(), [-10_000.0]);
    }

    #[test]
    fn nan_wins_and_zeros_are_equal() {
        let x = [1.0f32, f32::NAN, -5.0, f32::NAN];
        assert!(reduce(&Operator::Min, 1, 4, &x).unwrap()[0].is_nan());
        assert_eq!(reduce(&Operator::ArgMin, 1, 4, &x).unwrap(), [1.0]);
        assert_eq!(reduce(&Operator::ArgMin, 1, 2, &[0.0f32, -0.0]).unwrap(), [0.0]);
    }

    #[test]
    fn an_empty_input_reduces_to_the_identity() {
        assert_eq!(reduce::<f32>(&Operator::Sum, 2, 0, &[]).unwrap(), [0.0, 0.0]);
        assert_eq!(reduce::<i32>(&Operator::Prod, 1, 0, &[]).unwrap(), [1.0]);
    }

    #[test]
    fn own_operators_keep_their_order() {
        // Composition of x -> 2x + digit: does not commute.
        assert_eq!(reduce_with(1, 3, &[1u32, 2, 3], 0, |a, b| a * 10 + b), [123]);
    }
}

mod reduce_by_key {
    use super::*;

    #[test]
    fn runs_by_hand() {
        let of = |op, keys: &[u32]| reduce_by_key(&op, keys, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        assert_eq!(of(Operator::Sum, &[7, 7, 3, 3, 3, 7]), (vec![7, 3, 7], vec![3.0, 12.0, 6.0]));
        assert_eq!(of(Operator::Max, &[5; 6]), (vec![5], vec![6.0]));
        assert_eq!(reduce_by_key::<u32, u32>(&Operator::Sum, &[], &[]), Some((vec![], vec![])));
        let nan = reduce_by_key(&Operator::Sum, &[f32::NAN, f32::NAN], &[1u32, 2]).unwrap();
        assert_eq!(nan.1, [1.0, 2.0]);
        assert_eq!(reduce_by_key_bound(&Operator::Sum, &[1u32, 1, 2], &[1u32, 2, 3]), [0.0; 2]);
    }
}

mod reduce_offsets {
    use super::*;

    #[test]
    fn segments_by_hand() {
        let of = |op, offsets: &[u32]| reduce_offsets(&op, &[1u32, 2, 3, 4], offsets).unwrap();
        assert_eq!(of(Operator::Sum, &[0, 2, 2, 4]), [3.0, 0.0, 7.0]);
        assert_eq!(of(Operator::Prod, &[1, 1, 9]), [1.0, 24.0]);
        assert_eq!(of(Operator::Sum, &[3, 1, 2, 0, 3]), [0.0, 2.0, 0.0, 6.0]);
        assert_eq!(of(Operator::ArgMin, &[1, 3, 3, 4]), [1.0, f64::from(u32::MAX), 3.0]);
        assert_eq!(of(Operator::ArgMax, &[0, 9]), [3.0]);
        assert_eq!(of(Operator::Max, &[4, 4]), [0.0]);
        assert!(of(Operator::Sum, &[2]).is_empty());
        assert_eq!(reduce_offsets_bound(&Operator::Sum, &[1u32, 2], &[0, 1, 1]), [0.0; 2]);
    }
}

mod segmented_reduce {
    use super::*;

    #[test]
    fn segments_by_hand() {
        let of = |op, heads: &[u32]| segmented_reduce(&op, &[1u32, 2, 3, 4, 5], heads).unwrap();
        assert_eq!(of(Operator::Sum, &[0, 0, 1, 0, 9]), [3.0, 7.0, 5.0]);
        assert_eq!(of(Operator::Prod, &[1, 0, 0, 0, 0]), [120.0]);
        assert!(segmented_reduce::<f32>(&Operator::Sum, &[], &[]).unwrap().is_empty());
        assert_eq!(segmented_reduce_bound(&Operator::Sum, &[1u32, 2, 3], &[0, 1, 0]), [0.0; 2]);
    }
}
