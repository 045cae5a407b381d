use super::*;

mod filter1d {
    use super::*;
    use crate::conv::Boundary;

    #[test]
    fn known_sums_at_every_boundary() {
        let x = [8.0f32, 2.0, 5.0, 4.0, 1.0, 7.0, 3.0];
        let op = Filter1d::new(7, &[1.0, 3.0, 5.0, 3.0, 1.0]);
        assert_eq!(filter1d(&op, &x), [51.0, 53.0, 52.0, 47.0, 46.0, 51.0, 37.0]);
        let next = Filter1d::new(3, &[0.0, 0.0, 1.0]);
        assert_eq!(filter1d(&next, &x[..3]), [2.0, 5.0, 0.0]);
        assert_eq!(filter1d(&next.clone().boundary(Boundary::Clamp), &x[..3]), [2.0, 5.0, 5.0]);
        assert_eq!(filter1d(&next.boundary(Boundary::Wrap), &x[..3]), [2.0, 5.0, 8.0]);
    }
}

mod filter2d {
    use super::*;
    use crate::conv::Boundary;

    #[test]
    fn known_sums_at_every_boundary() {
        let x = [1u8, 2, 3, 4, 5, 6, 7, 8, 9];
        let sum = Filter2d::new([3, 3], [3, 3], &[1.0; 9]);
        assert_eq!(filter2d(&sum, &x), [12.0, 21.0, 16.0, 27.0, 45.0, 33.0, 24.0, 39.0, 28.0]);
        assert_eq!(filter2d(&sum.clone().boundary(Boundary::Wrap), &x), [45.0; 9]);
        assert_eq!(filter2d(&sum.boundary(Boundary::Clamp), &x)[0], 21.0);
        // The element above, then the one to the right.
        let above = Filter2d::new([3, 3], [3, 1], &[1.0, 0.0, 0.0]);
        assert_eq!(filter2d(&above, &x), [0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let right = Filter2d::new([3, 3], [1, 3], &[0.0, 0.0, 1.0]);
        assert_eq!(filter2d(&right, &x), [2.0, 3.0, 0.0, 5.0, 6.0, 0.0, 8.0, 9.0, 0.0]);
    }
}

mod filter3d {
    use super::*;

    #[test]
    fn a_weight_off_the_middle_moves_the_volume() {
        // Planes (0 1; 2 3) and (4 5; 6 7), and the element before along z: the first of three weights.
        let x: [f32; 8] = std::array::from_fn(|i| i as f32);
        let op = Filter3d::new([2, 2, 2], [1, 1, 1], &[2.0]);
        assert_eq!(filter3d(&op, &x), x.map(|v| f64::from(2.0 * v)));
        let x: [f32; 6] = std::array::from_fn(|i| i as f32);
        let before = Filter3d::new([3, 1, 2], [3, 1, 1], &[1.0, 0.0, 0.0]);
        assert_eq!(filter3d(&before, &x), [0.0, 0.0, 0.0, 1.0, 2.0, 3.0]);
        assert_eq!(filter3d(&before.clone().boundary(Boundary::Clamp), &x), [0.0, 1.0, 0.0, 1.0, 2.0, 3.0]);
        assert_eq!(filter3d(&before.boundary(Boundary::Wrap), &x), [4.0, 5.0, 0.0, 1.0, 2.0, 3.0]);
    }
}
