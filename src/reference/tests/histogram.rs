use super::*;

mod histogram {
    use super::*;

    #[test]
    fn ends_and_edges_by_hand() {
        let x = [0u32, 1, 1, 3, 4, 5, u32::MAX];
        assert_eq!(histogram(&Histogram::new(7, 4), &x).unwrap(), [1, 2, 0, 1]);
        assert_eq!(histogram(&Histogram::new(7, 4).range(0.0, 4.0), &x).unwrap(), [1, 2, 0, 2]);
        assert_eq!(histogram(&Histogram::new(7, 2).range(1.0, 4.0), &x).unwrap(), [2, 2]);
        assert_eq!(histogram(&Histogram::new(7, 1).range(0.0, 4294967295.0), &x).unwrap(), [7]);
        let x = [0.0f32, -0.0, 0.1, 0.3, 0.7, 1.0, 1.5, -0.1, f32::NAN, f32::INFINITY];
        let tenths = histogram(&Histogram::new(10, 10).range(0.0, 1.0), &x).unwrap();
        assert_eq!(tenths, [2, 1, 0, 1, 0, 0, 0, 1, 0, 1]);
        let own = Histogram::with_edges(10, [f64::NEG_INFINITY, 0.0, 0.3f32.into(), f64::INFINITY]);
        assert_eq!(histogram(&own, &x).unwrap(), [1, 3, 5]);
    }

    #[test]
    fn edges_of_integers_are_fractions() {
        // Edges 0, 7/3, 14/3, 7.
        let x = [0u8, 1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(histogram(&Histogram::new(9, 3).range(0.0, 7.0), &x).unwrap(), [3, 2, 3]);
        assert_eq!(histogram(&Histogram::new(9, 2).range(0.5, 4.5), &x).unwrap(), [2, 2]);
        let x = [-3i32, -1, 0, 2];
        assert_eq!(histogram(&Histogram::new(4, 2).range(-3.0, 3.0), &x).unwrap(), [2, 2]);
    }

    #[test]
    fn of_equal_edges_the_last_counts() {
        // Between 1 and the next f32 there is nothing: all edges but the last round to 1 or to its neighbour.
        let next = 1f32.next_up();
        let counts = histogram(&Histogram::new(2, 4).range(1.0, f64::from(next)), &[1f32, next]).unwrap();
        assert_eq!(counts.iter().sum::<u32>(), 2);
        assert_eq!(counts[3], 1);
    }
}

mod histogram_2d {
    use super::*;

    #[test]
    fn points_by_hand() {
        let op = Histogram2d::new(5, [2, 3], [0.0, 0.0], [1.0, 3.0]);
        let (x, y) = ([0.0, 0.5, 1.0, 0.7, f32::NAN], [0.0, 1.0, 3.0, -0.1, 1.0]);
        assert_eq!(histogram_2d(&op, &x, &y), [1, 0, 0, 0, 1, 1]);
    }
}

mod histogram_channels {
    use super::*;

    #[test]
    fn channels_by_hand() {
        let op = HistogramChannels::new(2, 3, 4).active(2);
        assert_eq!(histogram_channels(&op, &[0u8, 3, 1, 0, 4, 1]).unwrap(), [2, 0, 0, 0, 0, 0, 0, 1]);
    }
}

mod weighted_histogram {
    use super::*;

    #[test]
    fn sums_by_hand() {
        let op = WeightedHistogram::new(6, 2, 0.0, 1.0);
        let x = [0.0, 0.5, 1.0, -0.1, f32::NAN, 0.25];
        assert_eq!(weighted_histogram(&op, &x, &[1u32, 2, 4, 8, 16, 32]).unwrap(), [33.0, 6.0]);
        let op = WeightedHistogram::with_edges(3, [0.0, 1.0, 10.0]);
        assert_eq!(weighted_histogram(&op, &[10.0, 1.0, 0.5], &[1.5f32, -3.0, 8.0]).unwrap(), [8.0, -1.5]);
        assert_eq!(weighted_histogram_bound(&op, &[5.0], &[7i32]).unwrap(), [0.0, 0.0]);
    }
}
