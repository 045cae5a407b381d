use super::*;

mod quadtree {
    use super::*;

    const NONE: u32 = u32::MAX;

    #[test]
    fn a_small_tree_matches_one_made_by_hand() {
        // One point in each lower quarter, none in the upper left one, and three in the upper right one.
        let points = [[0.0, 0.0], [1.0, 1.0], [0.6, 0.2], [0.8, 0.8], [0.55, 0.95]];
        let square = quadtree_square(&points);
        assert_eq!(square, TreeSquare { low: [0.0; 2], side: 1.0 });
        let (nodes, order) = quadtree(&points, square, 1, 16, usize::MAX);
        assert_eq!(nodes.len(), 1 + 4 + 4 + 4);
        assert_eq!(nodes[0], [1, 0, 5, 0, 0, 0]);
        let quarters = [[NONE, 0, 1, 1, 0, 0], [NONE, 1, 1, 1, 1, 0], [NONE, 2, 0, 1, 0, 1], [5, 2, 3, 1, 1, 1]];
        assert_eq!(nodes[1..5], quarters);
        assert_eq!(order, [0, 2, 4, 3, 1]);
        assert_eq!(quadtree(&points, square, 1, 1, usize::MAX).0.len(), 5);
        assert_eq!(quadtree(&points, square, 1, 16, 8).0.len(), 5);
    }

    #[test]
    fn points_without_a_place_come_last() {
        let points = [[f32::NAN, 0.0], [3.0, 1.0], [f32::INFINITY, 0.0], [2.0, 2f32.powi(126)], [2.0, 0.0]];
        let square = quadtree_square(&points);
        assert_eq!(square, TreeSquare { low: [2.0, 0.0], side: 1.0 });
        assert_eq!(quadtree(&points, square, 4, 16, 1), (vec![[NONE, 0, 2, 0, 0, 0]], vec![4, 1, 0, 2, 3]));
        assert_eq!(quadtree(&[], quadtree_square(&[]), 4, 16, 1).0, [[NONE, 0, 0, 0, 0, 0]]);
        // Equal points: a chain of nodes, and one leaf.
        let (nodes, _) = quadtree(&[[5.0; 2]; 3], quadtree_square(&[[5.0; 2]; 3]), 2, 3, usize::MAX);
        assert_eq!((nodes.len(), nodes[9]), (13, [NONE, 0, 3, 3, 0, 0]));
    }
}

mod adaptive_grid {
    use super::*;

    #[test]
    fn a_step_is_refined_along_its_edge() {
        let above = |threshold: f32| move |_: &[u32; 4], range: f32| range > threshold;
        let step = |x: f64, _: f64| f32::from(u8::from(x >= 0.3));
        let (nodes, values) = adaptive_grid(step, 0..=2, above(0.5), usize::MAX);
        assert_eq!(nodes.len(), 1 + 4 + 8);
        assert_eq!(nodes[..3], [[1, 0, 0, 0], [5, 1, 0, 0], [u32::MAX, 1, 1, 0]]);
        assert_eq!(values[..3], [[0.75, 1.0], [0.375, 1.0], [1.0, 0.0]]);
        assert_eq!(adaptive_grid(step, 0..=2, above(0.5), 8).0.len(), 5);
        assert_eq!(adaptive_grid(step, 1..=2, above(1.0), 8).0.len(), 4);
        assert_eq!(adaptive_grid(|_, _| f32::NAN, 0..=2, above(0.5), 8).0, [[u32::MAX, 0, 0, 0]]);
    }
}

mod frontier {
    use super::*;

    #[test]
    fn children_come_in_whole_groups() {
        let of = |room| frontier(&[7, 8, 9], &[1, 0, 5], 4, room);
        assert_eq!([3, 4, 7, 8, 99].map(|room| of(room).1), [0, 4, 4, 8, 8]);
        assert_eq!(of(3).0, [7, 9]);
    }
}
