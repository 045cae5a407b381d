use super::*;

mod map {
    use super::*;
    use crate::ErrorKind;
    use half::f16;

    #[test]
    fn simple_functions_match_values_known_by_heart() {
        let x = [-2.0f32, -0.5, 0.0, 3.0, f32::NEG_INFINITY, f32::INFINITY];
        let inf = f32::INFINITY;
        assert_eq!(map(&MapFn::Neg, &x).unwrap(), [2.0, 0.5, 0.0, -3.0, inf, -inf]);
        assert_eq!(map(&MapFn::Abs, &x).unwrap(), [2.0, 0.5, 0.0, 3.0, inf, inf]);
        assert_eq!(map(&MapFn::Relu, &x).unwrap(), [0.0, 0.0, 0.0, 3.0, 0.0, inf]);
        for f in [MapFn::Abs, MapFn::Relu] {
            assert!(map(&f, &[-0.0f32]).unwrap()[0].is_sign_positive());
        }
        assert_eq!(map(&MapFn::Sqrt, &[4.0f32, 2.25, 0.0]).unwrap(), [2.0, 1.5, 0.0]);
        assert_eq!(map(&MapFn::Exp, &[0.0f32, 1.0, -inf, 100.0]).unwrap(), [1.0, std::f32::consts::E, 0.0, inf]);
        assert_eq!(map(&MapFn::Sigmoid, &[0.0f32, -inf, inf]).unwrap(), [0.5, 0.0, 1.0]);
        assert_eq!(map(&MapFn::Tanh, &[0.0f32, -inf, 20.0]).unwrap(), [0.0, -1.0, 1.0]);
    }

    #[test]
    fn nan_gives_nan_in_every_function() {
        for function in MapFn::BUILT_IN {
            assert!(map(&function, &[f32::NAN]).unwrap()[0].is_nan(), "{function}");
            assert!(map(&function, &[f16::NAN]).unwrap()[0].is_nan(), "{function}");
        }
        assert!(map(&MapFn::Sqrt, &[-1.0f32]).unwrap()[0].is_nan());
    }

    #[test]
    fn halves_are_rounded_to_the_nearest() {
        let e = map(&MapFn::Exp, &[f16::ONE, f16::from_f32(12.0)]).unwrap();
        assert_eq!(e, [f16::from_f32(2.71875), f16::INFINITY]);
    }

    #[test]
    fn integers_wrap() {
        let x = [5, -5, 0, i32::MIN];
        assert_eq!(map(&MapFn::Neg, &x).unwrap(), [-5, 5, 0, i32::MIN]);
        assert_eq!(map(&MapFn::Abs, &x).unwrap(), [5, 5, 0, i32::MIN]);
        assert_eq!(map(&MapFn::Relu, &x).unwrap(), [5, 0, 0, 0]);
    }

    #[test]
    fn undefined_functions_are_refused() {
        let custom = MapFn::custom("fn map(x: T) -> T { return x; }");
        assert_eq!(map(&custom, &[1.0f32]).unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(map(&MapFn::Exp, &[1]).unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(map(&MapFn::Neg, &[1u32]).unwrap_err().kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn bounds_are_those_of_wgsl() {
        let u = 2f64.powi(-23);
        assert_eq!(map_bound(&MapFn::Neg, &[1.5f32, -3e38, 0.0]).unwrap(), [0.0; 3]);
        assert_eq!(map_bound(&MapFn::Neg, &[3, i32::MIN]).unwrap(), [0.0; 2]);
        assert_eq!(map_bound(&MapFn::Exp, &[0.0f32]).unwrap(), [3.0 * u]);
        let [far] = map_bound(&MapFn::Exp, &[50.0f32]).unwrap()[..] else { panic!() };
        assert!((far / 50f64.exp() - 103.0 * u).abs() <= u);
        // What may be taken for 0.
        assert_eq!(map_bound(&MapFn::Abs, &[-1e-40f32]).unwrap(), [f64::from(1e-40f32)]);
        let [root] = map_bound(&MapFn::Sqrt, &[1e-40f32]).unwrap()[..] else { panic!() };
        assert!((root - 1e-20).abs() < 1e-25);
        // Halves are far apart: all but a few results are certain.
        assert_eq!(map_bound(&MapFn::Tanh, &[f16::from_f32(0.3)]).unwrap(), [0.0]);
        // What both allow at the ends: all of a result below the normal numbers, and one step at 1.
        assert_eq!(map_bound(&MapFn::Sigmoid, &[-100.0f32]).unwrap(), [f64::from((-100f32).exp())]);
        assert!(map_bound(&MapFn::Tanh, &[10.0f32]).unwrap()[0] <= u);
        assert_eq!(map_bound(&MapFn::Sigmoid, &[f32::INFINITY, f32::NEG_INFINITY]).unwrap(), [0.0; 2]);
    }
}

mod zip {
    use super::*;
    use crate::ErrorKind;
    use half::f16;

    fn all<T: Number>(x: &[T], y: &[T]) -> [Vec<T>; 6] {
        ZipFn::BUILT_IN.map(|f| zip(&f, x, y).unwrap())
    }

    #[test]
    fn floats_match_values_known_by_heart() {
        let [add, sub, mul, div, min, max] = all(&[6.0f32, -1.0, 0.0], &[2.0, 0.5, 0.0]);
        assert_eq!(add, [8.0, -0.5, 0.0]);
        assert_eq!(sub, [4.0, -1.5, 0.0]);
        assert_eq!(mul, [12.0, -0.5, 0.0]);
        assert_eq!(div[..2], [3.0, -2.0]);
        assert!(div[2].is_nan());
        assert_eq!(min, [2.0, -1.0, 0.0]);
        assert_eq!(max, [6.0, 0.5, 0.0]);
    }

    #[test]
    fn min_and_max_keep_nan_from_either_side() {
        for f in [ZipFn::Min, ZipFn::Max] {
            let z = zip(&f, &[f32::NAN, 1.0, f32::NAN], &[1.0, f32::NAN, f32::NAN]).unwrap();
            assert!(z.iter().all(|z| z.is_nan()), "{f}: {z:?}");
        }
    }

    #[test]
    fn halves_are_rounded_once() {
        let h = f16::from_f32;
        let [add, _, mul, div, ..] = all(&[h(2048.0), h(60000.0)], &[h(1.0), h(60000.0)]);
        assert_eq!(add, [h(2048.0), f16::INFINITY]);
        assert_eq!(mul, [h(2048.0), f16::INFINITY]);
        assert_eq!(div, [h(2048.0), f16::ONE]);
    }

    #[test]
    fn integers_wrap_and_divide_by_wgsls_rule() {
        let [add, sub, mul, div, min, max] = all(&[7, -7, i32::MIN, i32::MAX], &[0, 2, -1, i32::MAX]);
        assert_eq!(add, [7, -5, i32::MAX, -2]);
        assert_eq!(sub, [7, -9, i32::MIN + 1, 0]);
        assert_eq!(mul, [0, -14, i32::MIN, 1]);
        assert_eq!(div, [7, -3, i32::MIN, 1]);
        assert_eq!(min, [0, -7, i32::MIN, i32::MAX]);
        assert_eq!(max, [7, 2, -1, i32::MAX]);
        let [add, sub, mul, div, ..] = all(&[9, u32::MAX], &[0, u32::MAX]);
        assert_eq!(add, [9, u32::MAX - 1]);
        assert_eq!(sub, [9, 0]);
        assert_eq!(mul, [0, 1]);
        assert_eq!(div, [9, 1]);
    }

    #[test]
    fn lengths_that_differ_and_custom_functions_are_refused() {
        let kind = |f, y: &[f32]| zip(&f, &[1.0], y).unwrap_err().kind();
        assert_eq!(kind(ZipFn::Add, &[]), ErrorKind::Shape);
        let custom = ZipFn::custom("fn zip(x: T, y: T) -> T { return x; }");
        assert_eq!(kind(custom, &[1.0]), ErrorKind::Unsupported);
    }

    #[test]
    fn bounds_are_those_of_wgsl() {
        let u = 2f64.powi(-23);
        let of = |f, x: f32, y: f32| zip_bound(&f, &[x], &[y]).unwrap()[0];
        assert_eq!(of(ZipFn::Add, 0.5, 0.25), 0.0);
        assert_eq!(of(ZipFn::Add, 1.0, 1e-10), u);
        assert_eq!(of(ZipFn::Mul, 1e-30, 1e-10), f64::from(1e-30f32 * 1e-10));
        assert_eq!(of(ZipFn::Div, 4.0, 4.0), 2.5 * u);
        assert_eq!(of(ZipFn::Div, 1.0, 1e-40), f64::INFINITY);
        assert_eq!(of(ZipFn::Min, 3.0, 1.0), 0.0);
        assert_eq!(of(ZipFn::Max, 1e-40, 2e-40), f64::from(2e-40f32));
        assert_eq!(zip_bound(&ZipFn::Div, &[7], &[0]).unwrap(), [0.0]);
        let [x, y] = [1.5, 1.125].map(f16::from_f32);
        assert_eq!(zip_bound(&ZipFn::Mul, &[x], &[y]).unwrap(), [0.0]);
    }
}

mod axpy {
    use super::*;
    use crate::ErrorKind;
    use half::f16;

    #[test]
    fn axpy_matches_values_known_by_heart() {
        let mut y = [1.0f32, 2.0, 3.0];
        axpy(0.5, &[2.0, 4.0, -6.0], &mut y).unwrap();
        assert_eq!(y, [2.0, 4.0, 0.0]);
        let mut y = [f16::from_f32(60000.0), f16::ONE];
        axpy(-2.0, &[f16::from_f32(30000.0), f16::ONE], &mut y).unwrap();
        assert_eq!(y, [f16::ZERO, f16::NEG_ONE]);
        let mut y = [1, i32::MAX];
        axpy(-3.0, &[2, -1], &mut y).unwrap();
        assert_eq!(y, [-5, i32::MIN + 2]);
        let mut y = [1, 1];
        axpy(4294967295.0, &[1, u32::MAX], &mut y).unwrap();
        assert_eq!(y, [0, 2]);
    }

    #[test]
    fn lengths_that_differ_are_refused() {
        assert_eq!(axpy(1.0, &[1.0f32], &mut []).unwrap_err().kind(), ErrorKind::Shape);
    }

    #[test]
    fn bounds_count_one_rounding_for_the_product_and_one_for_the_sum() {
        let u = 2f64.powi(-23);
        let of = |alpha, x: f32, y: f32| axpy_bound(alpha, &[x], &[y]).unwrap()[0];
        assert_eq!(of(0.5, 3.0, 0.25), 0.0);
        let third = f64::from(1.0f32 / 3.0);
        assert_eq!(of(third, 3.0, 0.0), 2.0 * u);
        assert_eq!(of(1.0, 1e-10, 1.0), u);
        assert_eq!(of(3e38, 3e38, -1.0), f64::INFINITY);
        assert_eq!(axpy_bound(-3.0, &[2], &[1]).unwrap(), [0.0]);
    }
}

mod scal {
    use super::*;

    #[test]
    fn products_by_hand() {
        assert_eq!(scal(0.5, &[1.0f32, -2.0]), [0.5, -1.0]);
        assert_eq!(scal(3.0, &[u32::MAX, 2]), [u32::MAX - 2, 6]);
        assert!(scal(0.0, &[f32::NAN])[0].is_nan());
    }
}

mod activation {
    use super::*;

    fn close(got: f64, want: f64) {
        assert!((got - want).abs() <= 1e-11 * want.abs(), "{got} for {want}");
    }

    #[test]
    fn normal_matches_published_tables() {
        // Abramowitz and Stegun, tables 26.1 and 26.2.
        close(normal(0.0), 0.5);
        close(normal(1.0), 0.841_344_746_068_543);
        close(normal(-2.0), 0.022_750_131_948_179_2);
        close(normal(3.0), 0.998_650_101_968_370);
        close(normal(-5.0), 2.866_515_718_791_94e-7);
        close(normal(-10.0), 7.619_853_024_160_53e-24);
        assert_eq!(normal(f64::INFINITY), 1.0);
    }

    #[test]
    fn both_branches_of_normal_agree_where_they_meet() {
        let x = 3.0 + 1e-9;
        close(normal(-x) + 1e-9 * 4.431_848_411_938_01e-3, normal(-3.0));
        close(normal(x) - 1e-9 * 4.431_848_411_938_01e-3, normal(3.0));
    }

    #[test]
    fn activations_match_known_values() {
        use Activation::*;
        assert_eq!(activate(Relu, -3.0), 0.0);
        assert_eq!(activate(Relu, 3.0), 3.0);
        assert_eq!(activate(Sigmoid, 0.0), 0.5);
        close(activate(Sigmoid, -1000.0), 0.0);
        close(activate(Sigmoid, 2.0) + activate(Sigmoid, -2.0), 1.0);
        close(activate(Tanh, 0.5), 0.462_117_157_260_01);
        close(activate(Gelu, 1.0), 0.841_344_746_068_543);
        assert_eq!(activate(Gelu, f64::NEG_INFINITY), 0.0);
        assert_eq!(activate(Gelu, f64::INFINITY), f64::INFINITY);
        for a in Activation::ALL {
            assert!(activate(a, f64::NAN).is_nan(), "{a:?}");
        }
    }
}
