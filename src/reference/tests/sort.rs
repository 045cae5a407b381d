use super::*;

mod sort {
    use super::*;

    #[test]
    fn integers_by_hand() {
        assert_eq!(sort_positions(&[3u32, 1, 2, 1], false, 0..32), [1, 3, 2, 0]);
        assert_eq!(sort_positions(&[3u32, 1, 2, 1], true, 0..32), [0, 2, 1, 3]);
        assert_eq!(sort_positions(&[5, -7, 0, i32::MIN], false, 0..32), [3, 1, 2, 0]);
        assert_eq!(sort_positions(&[5, -7, 0, i32::MAX], true, 0..32), [3, 0, 2, 1]);
        assert_eq!(sort_positions(&[1u64 << 40, 7, u64::MAX, 7], false, 0..64), [1, 3, 0, 2]);
        assert_eq!(sort_positions(&[1u64 << 40, 7, u64::MAX, 7], true, 0..64), [2, 0, 1, 3]);
    }

    #[test]
    fn floats_have_a_total_order_with_nan_last() {
        let nan = f32::NAN;
        let keys = [1.0, -nan, 0.0, -0.0, nan, -1.0, f32::NEG_INFINITY, f32::INFINITY, 1e-45, -1e-45];
        assert_eq!(sort_positions(&keys, false, 0..32), [6, 5, 9, 3, 2, 8, 0, 7, 1, 4]);
        assert_eq!(sort_positions(&keys, true, 0..32), [7, 0, 8, 2, 3, 9, 5, 6, 1, 4]);
    }

    #[test]
    fn narrow_keys_by_hand() {
        assert_eq!(sort_positions(&[200u8, 3, 7, 3], false, 0..8), [1, 3, 2, 0]);
        assert_eq!(sort_positions(&[-1i8, 5, -128, 127], false, 0..8), [2, 0, 1, 3]);
        assert_eq!(sort_positions(&[-1i8, 5, -128, 127], true, 0..8), [3, 1, 0, 2]);
        let halves = [1.0, f32::NAN, -0.0, 0.0, -2.0].map(f16::from_f32);
        assert_eq!(sort_positions(&halves, false, 0..16), [4, 2, 3, 0, 1]);
        assert_eq!(sort_positions(&halves, true, 0..16), [0, 3, 2, 4, 1]);
    }

    #[test]
    fn only_the_bits_asked_for_count() {
        assert_eq!(sort_positions(&[0x31u32, 0x12, 0x21, 0x10], false, 4..8), [1, 3, 2, 0]);
        assert_eq!(sort_positions(&[0x31u32, 0x12, 0x21, 0x10], true, 0..4), [1, 0, 2, 3]);
        assert_eq!(sort_positions(&[2u32, 1, 0], false, 7..7), [0, 1, 2]);
        assert_eq!(sort_positions(&[2u32, 1, 0], false, 32..32), [0, 1, 2]);
    }
}

mod merge_sort {
    use super::*;

    #[test]
    fn positions_by_hand() {
        assert_eq!(merge_sort_positions(&[3, -1, 2, -3], |a: i32, b| a.abs() < b.abs()), [1, 2, 0, 3]);
        assert_eq!(merge_sort_positions::<u32>(&[], |a, b| a < b), [0; 0]);
    }
}

mod segmented_sort {
    use super::*;

    #[test]
    fn segments_by_hand() {
        let of = |offsets: &[u32]| segmented_sort_positions(&[3u32, 1, 2, 1, 0], offsets, false);
        assert_eq!(of(&[0, 3, 3, 5]), [1, 2, 0, 4, 3]);
        assert_eq!(of(&[0]), [4, 1, 3, 2, 0]);
        assert_eq!(of(&[1, 2, 9]), [0, 1, 4, 3, 2]);
        assert_eq!(of(&[3, 0, 9, 3]), [1, 2, 0, 4, 3]);
        assert_eq!(segmented_sort_positions(&[1.0f32, f32::NAN, 2.0], &[0, 3], true), [2, 0, 1]);
    }
}

mod nth_element {
    use super::*;

    #[test]
    fn ranks_by_hand() {
        let x = [3.0f32, -0.0, f32::NAN, 0.0];
        assert_eq!(nth_element(&x, 0, false).map(f32::to_bits), Some(0x8000_0000));
        assert_eq!(nth_element(&x, 0, true), Some(3.0));
        assert_eq!(nth_element(&[-f32::NAN], 0, true).map(f32::to_bits), Some(0x7fc0_0000));
        assert_eq!(nth_element(&[5u32, 1, 5], 1, false), Some(5));
        assert_eq!(nth_element(&[5u32], 1, false), None);
    }
}

mod quantile {
    use super::*;

    #[test]
    fn quantiles_by_hand() {
        let x = [4.0, 1.0, 3.0, 2.0];
        assert_eq!(quantile(&Quantile::new(4, [0.0, 0.5, 1.0]), &x), [1.0, 2.5, 4.0]);
        assert_eq!(quantile(&Quantile::new(1, [0.3]), &[7.0]), [7.0]);
        assert!(quantile(&Quantile::new(2, [1.0]), &[f32::NAN, 1.0])[0].is_nan());
    }
}

mod top_k {
    use super::*;

    #[test]
    fn the_best_by_hand() {
        assert_eq!(top_k(&[3u32, 1, 4, 1, 5, 9, 2, 6], 3, false), [5, 7, 4]);
        assert_eq!(top_k(&[3u32, 1, 4, 1, 5, 9, 2, 6], 3, true), [1, 3, 6]);
        assert_eq!(top_k(&[7, -7, 7, 0], 2, false), [0, 2]);
        let floats = [f32::NAN, 0.0, -0.0, f32::INFINITY, -1.0, f32::NAN];
        assert_eq!(top_k(&floats, 6, false), [3, 1, 2, 4, 0, 5]);
        assert_eq!(top_k(&floats, 5, true), [4, 2, 1, 3, 0]);
    }
}

mod top_k_rows {
    use super::*;

    #[test]
    fn the_best_of_rows_by_hand() {
        let x = [3u32, 9, 1, 7, 7, 5];
        assert_eq!(top_k_rows(&x, 3, 2, false), (vec![9, 3, 7, 7], vec![1, 0, 0, 1]));
        assert_eq!(top_k_rows(&x, 3, 1, true), (vec![1, 5], vec![2, 2]));
        let segments = top_k_segments(&x, &[1, 2, 2, 9], 2, false);
        assert_eq!(segments, (vec![9, 0, 0, 0, 7, 7], vec![1, u32::MAX, u32::MAX, u32::MAX, 3, 4]));
    }
}

mod is_sorted {
    use super::*;

    #[test]
    fn order_by_hand() {
        let nan = f32::NAN;
        assert!(is_sorted(&[-1.0, 0.0, -0.0, 2.0, nan, -nan], false) && !is_sorted(&[nan, 1.0], false));
        assert!(is_sorted(&[2.0, -0.0, 0.0, -1.0, nan, -nan], true) && !is_sorted(&[nan, 1.0], true));
        assert!(is_sorted::<u32>(&[], false) && is_sorted(&[3u32], true) && !is_sorted(&[1, 2, 1], false));
    }
}
