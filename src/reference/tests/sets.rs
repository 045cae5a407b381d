use super::*;

mod merge {
    use super::*;

    #[test]
    fn merges_by_hand() {
        let nan = f32::NAN;
        assert_eq!(merge_positions(&[1u32, 4, 4], &[0, 4, 9], false), [3, 0, 1, 2, 4, 5]);
        assert_eq!(merge_positions(&[3, 1, -5], &[3, 2], true), [0, 3, 4, 1, 2]);
        assert_eq!(merge_positions(&[0.0, nan], &[-0.0, 0.0, nan], false), [2, 0, 3, 1, 4]);
        assert_eq!(merge_positions(&[0.0, nan], &[-0.0, nan], true), [0, 2, 1, 3]);
        assert_eq!(merge_positions::<u32>(&[], &[], false), [0; 0]);
    }
}

mod set_intersection {
    use super::*;
    use crate::reference::{set_difference, set_union};

    #[test]
    fn sets_by_hand() {
        let (a, b) = (&[1u32, 4, 4, 4, 9][..], &[0u32, 4, 4, 5, 9, 9][..]);
        assert_eq!(set_intersection(a, b), [4, 4, 9]);
        assert_eq!(set_difference(a, b), [1, 4]);
        assert_eq!(set_difference(b, a), [0, 5, 9]);
        assert_eq!(set_union(a, b), [0, 1, 4, 4, 4, 5, 9, 9]);
        assert_eq!((set_union(a, &[]), set_union(&[], b)), (a.to_vec(), b.to_vec()));
        assert_eq!((set_intersection(a, &[]), set_difference(&[], b)), (vec![], vec![]));
    }

    #[test]
    fn floats_are_compared_by_value() {
        let (a, b) = ([0.0f32, f32::NAN], [-0.0f32, 0.0, -f32::NAN]);
        let bits = |x: Vec<f32>| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(set_intersection(&b, &a)), bits(vec![-0.0, -f32::NAN]));
        assert_eq!(bits(set_union(&a, &b)), bits(vec![0.0, 0.0, f32::NAN]));
    }
}

mod unique_by_key {
    use super::*;

    #[test]
    fn heads_keep_their_values() {
        assert_eq!(unique_by_key(&[7, 7, 3, 7], &[1, 2, 3, 4]), (vec![7, 3, 7], vec![1, 3, 4]));
        assert_eq!(unique_by_key(&[0.0, -0.0, f32::NAN, f32::NAN], &[1, 2, 3, 4]).1, [1, 3, 4]);
        assert_eq!(unique_by_key::<u32, u32>(&[], &[]), (vec![], vec![]));
    }
}

mod lower_bound {
    use super::*;
    use crate::reference::upper_bound;

    #[test]
    fn bounds_by_hand() {
        let nan = f32::NAN;
        let (x, needles) = ([-1.0, -0.0, 0.0, 2.0, nan, nan], [-2.0, 0.0, -0.0, 1.0, 2.0, f32::INFINITY, nan]);
        assert_eq!(lower_bound(&x, &needles), [0, 1, 1, 3, 3, 4, 4]);
        assert_eq!(upper_bound(&x, &needles), [0, 3, 3, 3, 4, 4, 6]);
        assert_eq!(lower_bound(&[] as &[u32], &[3]), [0]);
    }
}

mod find {
    use super::*;

    #[test]
    fn finds_by_hand() {
        assert_eq!(find(&[false, true, false, true]), [1, 2]);
        assert_eq!((find(&[false; 3]), find(&[])), ([3, 0], [0, 0]));
    }
}
