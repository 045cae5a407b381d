use super::*;

mod dot {
    use super::*;

    #[test]
    fn products_by_hand() {
        assert_eq!(dot(&[1.0f32, -2.0], &[3.0, 4.0]), -5.0);
        assert_eq!(dot(&[1i32 << 20, -3], &[1 << 12, 5]), -15.0);
        assert_eq!(dot(&[u32::MAX, 2], &[u32::MAX, 3]), 7.0);
        assert_eq!((dot::<f32>(&[], &[]), dot_bound::<f32>(&[], &[])), (0.0, 0.0));
    }
}

mod nrm2 {
    use super::*;

    #[test]
    fn norms_by_hand() {
        assert_eq!(nrm2(&[3.0f32, -4.0]), 5.0);
        assert_eq!(nrm2(&[3e38f32]), f64::from(3e38f32));
        assert_eq!((nrm2::<f32>(&[]), nrm2_bound::<f32>(&[])), (0.0, 0.0));
        assert_eq!(nrm2(&[f32::NEG_INFINITY, 1.0]), f64::INFINITY);
        assert!(nrm2(&[f32::NAN, f32::INFINITY]).is_nan());
    }
}

mod asum {
    use super::*;

    #[test]
    fn magnitudes_by_hand() {
        assert_eq!(asum(&[1.0f32, -2.0, 0.0]), 3.0);
    }
}

mod iamax {
    use super::*;

    #[test]
    fn positions_by_hand() {
        assert_eq!(iamax(&[1.0f32, -3.0, 3.0]), 1);
        assert_eq!(iamax(&[1.0f32, f32::NAN, f32::INFINITY, f32::NAN]), 1);
    }
}

mod iamin {
    use super::*;

    #[test]
    fn positions_by_hand() {
        assert_eq!(iamin(&[3.0f32, -1.0, 1.0]), 1);
        assert_eq!(iamin(&[1.0f32, f32::NAN, f32::INFINITY, f32::NAN]), 1);
    }
}
