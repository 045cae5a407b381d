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
