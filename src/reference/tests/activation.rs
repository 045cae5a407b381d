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
