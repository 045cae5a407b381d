use super::*;

mod scan {
    use super::*;

    #[test]
    fn forms_by_hand() {
        let x = [3.0f32, -1.0, 2.0, 2.0, 5.0, 5.0];
        let of = |op, exclusive, reverse| scan(&op, 2, 3, exclusive, reverse, &x).unwrap();
        assert_eq!(of(Operator::Sum, false, false), [3.0, 2.0, 4.0, 2.0, 7.0, 12.0]);
        assert_eq!(of(Operator::Sum, true, false), [0.0, 3.0, 2.0, 0.0, 2.0, 7.0]);
        assert_eq!(of(Operator::Sum, false, true), [4.0, 1.0, 2.0, 12.0, 10.0, 5.0]);
        assert_eq!(of(Operator::Prod, true, true), [-2.0, 2.0, 1.0, 25.0, 5.0, 1.0]);
        assert_eq!(of(Operator::Min, false, false), [3.0, -1.0, -1.0, 2.0, 2.0, 2.0]);
        assert_eq!(of(Operator::Max, true, false), [f64::NEG_INFINITY, 3.0, 3.0, f64::NEG_INFINITY, 2.0, 5.0]);
    }

    #[test]
    fn integers_wrap_and_have_identities() {
        let of = |op| scan(&op, 1, 2, false, false, &[u32::MAX, 2]).unwrap();
        assert_eq!(of(Operator::Sum), [4_294_967_295.0, 1.0]);
        assert_eq!(of(Operator::Prod), [4_294_967_295.0, 4_294_967_294.0]);
        let first = |op| scan(&op, 1, 1, true, false, &[7i32]).unwrap()[0];
        assert_eq!(first(Operator::Min), f64::from(i32::MAX));
        assert_eq!(first(Operator::Max), f64::from(i32::MIN));
    }

    #[test]
    fn nan_stays() {
        let x = [1.0f32, f32::NAN, 0.0];
        let least = scan(&Operator::Min, 1, 3, false, false, &x).unwrap();
        assert!(least[0] == 1.0 && least[1].is_nan() && least[2].is_nan());
    }

    #[test]
    fn own_operators_keep_the_order_of_the_scan() {
        let digits = |reverse| scan_with(1, 3, false, reverse, &[1u32, 2, 3], 0, |a, b| a * 10 + b);
        assert_eq!(digits(false), [1, 12, 123]);
        assert_eq!(digits(true), [321, 32, 3]);
    }
}

mod scan_by_key {
    use super::*;

    #[test]
    fn runs_by_hand() {
        let of = |exclusive, keys: &[u32]| scan_by_key(&Operator::Sum, exclusive, keys, &[1u32, 2, 3, 4]).unwrap();
        assert_eq!(of(false, &[7, 7, 3, 7]), [1.0, 3.0, 3.0, 4.0]);
        assert_eq!(of(true, &[7, 7, 7, 3]), [0.0, 1.0, 3.0, 0.0]);
        let nan = scan_by_key(&Operator::Sum, false, &[f32::NAN, f32::NAN, -0.0, 0.0], &[1u32, 2, 3, 4]).unwrap();
        assert_eq!(nan, [1.0, 2.0, 3.0, 7.0]);
        assert!(scan_by_key::<u32, f32>(&Operator::Max, false, &[], &[]).unwrap().is_empty());
        assert_eq!(scan_by_key_bound(&Operator::Sum, false, &[1u32, 1], &[1u32, 2]), [0.0; 2]);
    }
}

mod scan_offsets {
    use super::*;

    #[test]
    fn segments_by_hand() {
        let of =
            |exclusive, offsets: &[u32]| scan_offsets(&Operator::Sum, exclusive, &[1u32, 2, 3, 4], offsets).unwrap();
        assert_eq!(of(false, &[0, 2, 2, 4]), [1.0, 3.0, 3.0, 7.0]);
        assert_eq!(of(true, &[3, 9, 1]), [0.0, 0.0, 2.0, 0.0]);
        assert_eq!(scan_offsets_bound(&Operator::Sum, false, &[1u32, 2], &[1]), [0.0; 2]);
    }
}

mod segmented_scan {
    use super::*;

    #[test]
    fn segments_by_hand() {
        let x = [1u32, 2, 3, 4, 5];
        let of = |exclusive, heads: &[u32]| segmented_scan(&Operator::Sum, exclusive, &x, heads).unwrap();
        assert_eq!(of(false, &[0, 0, 1, 7, 0]), [1.0, 3.0, 3.0, 4.0, 9.0]);
        assert_eq!(of(true, &[1, 0, 1, 0, 0]), [0.0, 1.0, 0.0, 3.0, 7.0]);
        assert!(segmented_scan::<f32>(&Operator::Sum, false, &[], &[]).unwrap().is_empty());
        assert_eq!(segmented_scan_bound(&Operator::Sum, false, &x, &[0; 5]), [0.0; 5]);
    }
}
