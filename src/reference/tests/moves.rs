use super::*;

mod gather {
    use super::*;

    #[test]
    fn gathers_rows_and_zeros_for_indices_out_of_range() {
        let table = [1, 2, 3, 4, 5, 6];
        assert_eq!(gather(2, &table, &[2, 0, 3, 2, u32::MAX]), [5, 6, 1, 2, 0, 0, 5, 6, 0, 0]);
        assert_eq!(gather::<f32>(3, &[], &[0]), [0.0; 3]);
        assert!(gather(0, &table, &[1, 2]).is_empty());
    }
}

mod scatter {
    use super::*;

    #[test]
    fn rows_are_combined_in_order() {
        let (x, into) = ([1.0, 2.0, -3.0, 4.0, 5.0, -0.0], [0.0f32, 0.0, 7.0, 8.0]);
        let by = |op, indices: &[u32]| scatter(op, 2, &x, indices, &into);
        assert_eq!(by(ScatterOp::Set, &[1, 1, 2]), [0.0, 0.0, -3.0, 4.0]);
        assert_eq!(by(ScatterOp::Add, &[1, 1, u32::MAX]), [0.0, 0.0, 5.0, 14.0]);
        assert_eq!(by(ScatterOp::Min, &[1, 1, 0]), [0.0, -0.0, -3.0, 2.0]);
        assert!(by(ScatterOp::Min, &[1, 1, 0])[1].is_sign_negative());
        assert_eq!(by(ScatterOp::Max, &[0, 0, 0]), [5.0, 4.0, 7.0, 8.0]);
        assert!(scatter(ScatterOp::Max, 1, &[f32::NAN], &[0], &[1.0])[0].is_nan());
        assert_eq!(scatter(ScatterOp::Add, 1, &[200u8], &[0], &[100]), [44]);
    }
}

mod rotate {
    use super::*;

    #[test]
    fn places_count_to_the_left() {
        assert_eq!(rotate(1, &[1, 2, 3]), [2, 3, 1]);
        assert_eq!(rotate(-1, &[1, 2, 3]), [3, 1, 2]);
        assert_eq!(rotate(i64::MIN, &[1, 2, 3, 4]), [1, 2, 3, 4]);
        assert!(rotate::<u8>(5, &[]).is_empty());
    }
}
