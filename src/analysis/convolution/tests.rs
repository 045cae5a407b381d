use super::*;

fn ratio(axes: &[Axis]) -> (u64, u64) {
    (axes.iter().map(Axis::reads).product(), axes.iter().map(Axis::loads).product())
}

#[test]
fn reuse_inside_and_at_boundaries() {
    let (inside, boundary) = (Axis::inside(8, 5), Axis::at_boundary(8, 5));
    assert_eq!((ratio(&[inside]), ratio(&[boundary])), ((40, 12), (37, 10)));
    assert_eq!(ratio(&[inside; 2]), (1600, 144));
    assert_eq!(ratio(&[inside, boundary]), (1480, 120));
    assert_eq!(ratio(&[boundary; 2]), (1369, 100));
}

#[test]
fn tiles_smaller_than_the_radius_match_a_count() {
    let count = |tile: i64, mask: i64, inside: &dyn Fn(i64) -> bool| -> u64 {
        let reads = (0..tile).flat_map(|i| (0..mask).map(move |j| i + j - mask / 2));
        reads.filter(|at| inside(*at)).count() as u64
    };
    for (tile, mask) in [(16, 65), (16, 101), (1, 3), (1, 65), (5, 11), (6, 11), (0, 3)] {
        let sizes = (tile as u64, mask as u64);
        let shared = reads_from_shared(&[Axis::inside(sizes.0, sizes.1)]);
        assert_eq!(shared, count(tile, mask, &|at| (0..tile).contains(&at)), "{sizes:?}");
        let boundary = Axis::at_boundary(sizes.0, sizes.1).reads();
        assert_eq!(boundary, count(tile, mask, &|at| at < tile), "{sizes:?}");
    }
    assert_eq!(Axis::at_boundary(16, 65).reads(), 648);
}

#[test]
fn bytes_of_an_operation() {
    for mask in [1, 3, 25] {
        let untiled: Vec<_> = (0..3).map(|n| vec![Axis::inside(1, mask); n + 1]).collect();
        assert!(untiled.iter().all(|axes| Axis::bytes_per_operation(axes, 4) == 2.0), "{mask}");
    }
    assert_eq!(Axis::bytes_per_operation(&[Axis::inside(16, 9); 2], 4), 2.0 / 36.0);
}

#[test]
fn a_block_that_is_its_input_tile() {
    let axis = Axis::inside(16, 9);
    let side = axis.loads();
    assert_eq!((side, 2048 / (side * side), 2048 / (side * side) * side * side * 4), (24, 3, 6912));
    assert_eq!(Axis::reuse(&[axis; 2]), 36.0);
    // Four loads per thread: twice the side.
    assert_eq!(Axis::reuse(&[Axis::inside(2 * side - 8, 9); 2]), 56.25);
}

#[test]
fn a_halo_left_to_the_cache() {
    let axes = [Axis::inside(16, 9), Axis::inside(16, 5)];
    let (reads, shared) = (ratio(&axes).0, reads_from_shared(&axes));
    assert_eq!((reads, shared, reads - shared), (11_520, 9176, 2344));
    assert!((shared as f64 / 256.0 - 35.84).abs() < 5e-3);
    // Reads from memory under both strategies.
    let global = |axes: &[Axis]| {
        let tile: u64 = axes.iter().map(|a| a.tile).product();
        (tile + ratio(axes).0 - reads_from_shared(axes), ratio(axes).1)
    };
    assert_eq!(global(&[Axis::inside(16, 3); 2]), (444, 324));
    let (third, first) = global(&[Axis::inside(100, 3)]);
    assert_eq!(third, first);
}
