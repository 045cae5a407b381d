use super::*;

mod select {
    use super::*;

    #[test]
    fn any_flag_but_0_keeps() {
        assert_eq!(select(&[1, 2, 3, 4], &[0, 1, 0, u32::MAX]), [2, 4]);
        assert_eq!(select::<f32>(&[], &[]), [0.0; 0]);
    }
}

mod partition {
    use super::*;

    #[test]
    fn both_sides_keep_their_order() {
        assert_eq!(partition(&[1, 2, 3, 4, 5], &[0, 1, 0, 7, 0]), (vec![2, 4, 1, 3, 5], 2));
        assert_eq!(partition::<f32>(&[], &[]), (vec![], 0));
    }
}

mod split_parts {
    use super::*;

    #[test]
    fn parts_keep_their_order() {
        let (moved, counts) = split_parts(&['a', 'b', 'c', 'd', 'e'], &[2, 0, 1, 0, 9], 3);
        assert_eq!((moved, counts), (vec!['b', 'd', 'c', 'a', 'e'], vec![2, 1, 2]));
    }
}

mod unique {
    use super::*;

    #[test]
    fn runs_give_their_first_element() {
        assert_eq!(unique(&[7, 7, 3, 3, 3, 7]), [7, 3, 7]);
        assert_eq!(unique::<u32>(&[]), [0; 0]);
        let bits: Vec<u32> = unique(&[-0.0f32, 0.0, 1.0]).iter().map(|x| x.to_bits()).collect();
        assert_eq!(bits, [(-0.0f32).to_bits(), 1f32.to_bits()]);
        assert_eq!(unique(&[f32::NAN, f32::NAN]).len(), 2);
    }
}

mod run_length {
    use super::*;

    #[test]
    fn runs_give_their_first_element_and_length() {
        assert_eq!(run_length(&[7, 7, 3, 3, 3, 7]), (vec![7, 3, 7], vec![2, 3, 1]));
        assert_eq!(run_length::<u32>(&[]), (vec![], vec![]));
        assert_eq!(run_length(&[f32::NAN, f32::NAN]).1, [1, 1]);
    }
}

mod adjacent_difference {
    use super::*;

    #[test]
    fn differences_by_hand() {
        assert_eq!(adjacent_difference(&[1.0f32, 4.0, 2.5]), [1.0, 3.0, -1.5]);
        assert_eq!(adjacent_difference(&[3u32, 2]), [3, u32::MAX]);
        assert!(adjacent_difference::<i32>(&[]).is_empty());
    }
}
