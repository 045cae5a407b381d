use super::*;

mod rot {
    use super::*;

    #[test]
    fn quarter_turns_by_hand() {
        let [x, y] = rot([0.0, 1.0, -1.0, 0.0], &[1.0f32, 2.0], &[10.0, 20.0]);
        assert_eq!((x, y), (vec![10.0, 20.0], vec![-1.0, -2.0]));
    }
}

mod rotg {
    use super::*;

    #[test]
    fn rotations_by_hand() {
        assert_eq!(rotg(3.0, 0.0), [3.0, 0.0, 1.0, 0.0]);
        assert_eq!(rotg(0.0, -2.0), [-2.0, 1.0, 0.0, 1.0]);
        assert_eq!(rotg(3.0, 4.0), [5.0, 5.0 / 3.0, 0.6, 0.8]);
        assert_eq!(rotg(-4.0, 3.0), [-5.0, -0.6, 0.8, -0.6]);
    }
}

mod rotmg {
    use super::*;

    /// Compares with wanted results, relatively.
    fn check(given: [f32; 4], want: [f64; 8]) {
        for (got, want) in rotmg(given).into_iter().zip(want) {
            assert!((got - want).abs() <= 1e-6 * want.abs(), "{given:?}: {:?}", rotmg(given));
        }
    }

    #[test]
    fn rotmg_gives_known_results() {
        check([0.1, 0.3, 1.2, 0.2], [12.0 / 130.0, 36.0 / 130.0, 1.3, 0.0, 1.0, -1.0 / 6.0, 0.5, 1.0]);
        check([0.7, 0.2, 0.6, 4.2], [14.0 / 75.0, 49.0 / 75.0, 4.5, 1.0, 0.5, -1.0, 1.0, 1.0 / 7.0]);
        check([0.0; 4], [0.0, 0.0, 0.0, -2.0, 1.0, 0.0, 0.0, 1.0]);
        check([4.0, 0.0, 3.0, 2.0], [4.0, 0.0, 3.0, -2.0, 1.0, 0.0, 0.0, 1.0]);
        check([4.0, -1.0, 2.0, 4.0], [0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0]);
        check([-1.0, 1.0, 2.0, 4.0], [0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0]);
        let (g, third) = (4096.0, 1.0 / 3.0);
        let scaled = [4.5e-10 * g * g, 0.015, 4e5 * third / g, -1.0, 1.0 / g, -1e-4, 1e4 * third / g, 1.0];
        check([6e-10, 2e-2, 1e5, 10.0], scaled);
    }

    /// H takes (x1, y1) to (x, 0), and keeps the weighted length of every vector.
    #[test]
    fn rotmg_keeps_lengths() {
        let numbers = [1e-12f32, 3e-5, 0.25, 1.5, -0.5, 700.0, 4e9];
        let mut scaled = 0;
        for (i, &d1) in numbers.iter().enumerate().filter(|(_, d)| **d > 0.0) {
            for &d2 in &numbers {
                for (x1, y1) in [(0.3, -2.0), (5.0, 1e-3), (1e4, 2e4), (-1.0, numbers[i])] {
                    let [e1, e2, x, flag, h11, h21, h12, h22] = rotmg([d1, d2, x1, y1]);
                    if [h11, h21, h12, h22] == [0.0; 4] {
                        continue;
                    }
                    scaled += i32::from(flag == -1.0);
                    let [d1, d2, x1, y1] = [d1, d2, x1, y1].map(f64::from);
                    let near = |a: f64, b: f64, size: f64| (a - b).abs() <= 1e-9 * size;
                    let what = format!("{d1} {d2} {x1} {y1}");
                    assert!(near(h11 * x1 + h12 * y1, x, (h11 * x1).abs() + (h12 * y1).abs()), "{what}");
                    assert!(near(h21 * x1 + h22 * y1, 0.0, (h21 * x1).abs()), "{what}");
                    let square = |a: f64, b: f64| e1 * a * a + e2 * b * b;
                    let size = |a: f64, b: f64| (e1 * a * a).abs() + (e2 * b * b).abs();
                    assert!(near(square(h11, h21), d1, size(h11, h21)), "{what}");
                    assert!(near(square(h12, h22), d2, size(h12, h22)), "{what}");
                    let mixed = [e1 * h11 * h12, e2 * h21 * h22];
                    assert!(near(mixed[0] + mixed[1], 0.0, mixed[0].abs() + mixed[1].abs()), "{what}");
                    for d in [e1, e2] {
                        assert!(d == 0.0 || (LEAST..MOST).contains(&d.abs()), "{what}");
                    }
                }
            }
        }
        assert!(scaled > 10);
    }
}

mod caxpy {
    use super::*;

    #[test]
    fn sums_by_hand() {
        assert_eq!(caxpy([0.0, 1.0], &[1.0, 2.0], &[10.0, 0.0]), [8.0, 1.0]);
        assert_eq!(caxpy([2.0, 0.0], &[], &[]), [0.0; 0]);
    }
}

mod cdot {
    use super::*;

    #[test]
    fn products_by_hand() {
        let x = [1.0, 2.0, 0.0, 3.0];
        assert_eq!(cdot(false, &x, &x), [-12.0, 4.0]);
        assert_eq!(cdot(true, &x, &x), [14.0, 0.0]);
        assert_eq!((cdot(true, &[], &[]), cdot_bound(&[], &[])), ([0.0; 2], 0.0));
    }
}
