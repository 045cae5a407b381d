use super::*;

#[test]
fn children_come_in_whole_groups() {
    let of = |room| frontier(&[7, 8, 9], &[1, 0, 5], 4, room);
    assert_eq!([3, 4, 7, 8, 99].map(|room| of(room).1), [0, 4, 4, 8, 8]);
    assert_eq!(of(3).0, [7, 9]);
}
