use super::*;

mod random {
    use super::*;

    #[test]
    fn philox_gives_the_published_answers() {
        // The known answers of Random123: zeros, ones, and digits of pi.
        assert_eq!(philox([0; 4], 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([u32::MAX; 4], u64::MAX), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        assert_eq!(
            philox([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], 0x299f_31d0_a409_3822),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn positions_follow_seed_stream_and_offset() {
        let op = Random::new(Distribution::Bits, 6).seed(u64::MAX).stream(u64::MAX);
        let last = philox([1, 0, u32::MAX, u32::MAX], u64::MAX);
        assert_eq!(random_words(&op)[4..], last[..2]);
        assert_eq!(random_words(&op.offset(5))[..3], last[1..]);
    }

    #[test]
    fn integers_are_drawn_again_until_they_are_fair() {
        let range = 3 << 30;
        let op = Random::new(Distribution::Integers { low: 0, high: range }, 4000);
        let integers = random_words(&op);
        // Three of four words are kept; without another draw each third integer would come twice as often.
        let third = integers.iter().filter(|x| **x % 3 == 0).count();
        assert!(integers.iter().all(|x| i64::from(*x) < range) && (1230..1440).contains(&third), "{third}");
    }
}

mod categorical {
    use super::*;

    #[test]
    fn categories_come_as_often_as_their_weight() {
        let drawn = categorical(&Categorical::new(&[2.0, 0.0, 1.0, 5.0], 40_000).seed(8));
        let count = |k: u32| drawn.iter().filter(|x| **x == k).count();
        assert!((9_500..10_500).contains(&count(0)) && count(1) == 0 && (4_600..5_400).contains(&count(2)));
    }
}

mod shuffle {
    use super::*;

    #[test]
    fn seeds_give_permutations() {
        let x: Vec<u32> = (0..200).collect();
        let [a, b] = [1, 2].map(|seed| shuffle(&Shuffle::new(200).seed(seed), &x));
        let sorted = |mut x: Vec<u32>| {
            x.sort();
            x
        };
        assert!(a != b && a != x);
        assert_eq!((sorted(a), sorted(b)), (x.clone(), x));
    }
}
