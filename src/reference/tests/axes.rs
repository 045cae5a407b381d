use super::*;

mod transpose {
    use super::*;

    #[test]
    fn rows_become_columns() {
        assert_eq!(transpose(1, 2, 3, &[1, 2, 3, 4, 5, 6]), [1, 4, 2, 5, 3, 6]);
        assert_eq!(transpose(2, 1, 2, &[1, 2, 3, 4]), [1, 2, 3, 4]);
        assert_eq!(transpose(2, 2, 2, &[1u8, 2, 3, 4, 5, 6, 7, 8]), [1, 3, 2, 4, 5, 7, 6, 8]);
        assert_eq!(transpose(3, 0, 5, &[0f32; 0]), [0f32; 0]);
    }
}

mod permute_axes {
    use super::*;

    #[test]
    fn axes_by_hand() {
        assert_eq!(permute_axes(&[2, 3], &[1, 0], &[1, 2, 3, 4, 5, 6]), [1, 4, 2, 5, 3, 6]);
        assert_eq!(permute_axes(&[2, 1, 3], &[1, 0, 2], &[1, 2, 3, 4, 5, 6]), [1, 2, 3, 4, 5, 6]);
        assert!(permute_axes::<u8>(&[2, 0], &[1, 0], &[]).is_empty());
    }
}

mod strided_copy {
    use super::*;

    #[test]
    fn elements_by_hand() {
        let x: Vec<u8> = (0..12).collect();
        assert_eq!(strided_copy(&[2, 3], &[4, 1], 1, &x), [1, 2, 3, 5, 6, 7]);
        assert_eq!(strided_copy(&[3, 2], &[-4, 0], 9, &x), [9, 9, 5, 5, 1, 1]);
        assert!(strided_copy(&[0, 2], &[1, 1], 0, &x).is_empty());
    }
}

mod pad_axes {
    use super::*;

    #[test]
    fn modes_by_hand() {
        let of = |mode| pad_axes(&PadAxes::new(&[3], &[[4, 2]], mode), &[1, 2, 3]).unwrap();
        assert_eq!(of(PadMode::Constant(-7.9)), [-7, -7, -7, -7, 1, 2, 3, -7, -7]);
        assert_eq!(of(PadMode::Edge), [1, 1, 1, 1, 1, 2, 3, 3, 3]);
        assert_eq!(of(PadMode::Wrap), [3, 1, 2, 3, 1, 2, 3, 1, 2]);
        assert_eq!(of(PadMode::Reflect), [1, 2, 3, 2, 1, 2, 3, 2, 1]);
        let one = PadAxes::new(&[1], &[[2, 1]], PadMode::Reflect);
        assert_eq!(pad_axes(&one, &[5u8]).unwrap(), [5; 4]);
        let rows = PadAxes::new(&[1, 2], &[[1, 0], [0, 1]], PadMode::Constant(300.0));
        assert_eq!(pad_axes(&rows, &[5u8, 6]).unwrap(), [255, 255, 255, 5, 6, 255]);
    }
}

mod concatenate {
    use super::*;

    #[test]
    fn arrays_by_hand() {
        let (a, b) = ([1, 2, 3, 4], [8, 9]);
        assert_eq!(concatenate(&Concatenate::new(&[&[2, 2], &[2, 1]], 1), &[&a, &b]), [1, 2, 8, 3, 4, 9]);
        assert_eq!(concatenate(&Concatenate::new(&[&[2, 2], &[1, 2]], 0), &[&a, &b]), [1, 2, 3, 4, 8, 9]);
        assert!(concatenate::<u8>(&Concatenate::new(&[&[0, 2], &[0, 1]], 1), &[&[], &[]]).is_empty());
    }
}
