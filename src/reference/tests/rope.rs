use super::*;

#[test]
fn a_right_angle_swaps_pairs() {
    let x = [1.0f32, 2.0, 3.0, 4.0, 5.0];
    let tables = [&[0.0, 1.0][..], &[1.0, 0.0]];
    // The first pair by a right angle, the second by 0; the last element has no pair.
    let op = Rope::new([1, 1, 1, 5]).rotary(4);
    assert_eq!(rope(&op, &x, tables, None), [-3.0, 2.0, 1.0, 4.0, 5.0]);
    assert_eq!(rope(&op.interleaved(), &x, tables, None), [-2.0, 1.0, 3.0, 4.0, 5.0]);
}

#[test]
fn tokens_use_their_rows_of_the_tables() {
    // Two heads, two tokens, size two. The second position is beyond the tables and uses the last row.
    let x = [1.0f32, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0];
    let tables = [&[1.0, 0.0][..], &[0.0, 1.0]];
    let op = Rope::new([1, 2, 2, 2]);
    let want = [1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0];
    assert_eq!(rope(&op, &x, tables, None), want);
    assert_eq!(rope(&op.clone().with_positions(2), &x, tables, Some(&[0, 7])), want);
    let want = [1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0];
    assert_eq!(rope(&op.tokens_first(), &x, tables, None), want);
}
