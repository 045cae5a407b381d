use super::*;

#[test]
fn gathers_rows_and_zeros_for_indices_out_of_range() {
    let table = [1, 2, 3, 4, 5, 6];
    assert_eq!(gather(2, &table, &[2, 0, 3, 2, u32::MAX]), [5, 6, 1, 2, 0, 0, 5, 6, 0, 0]);
    assert_eq!(gather::<f32>(3, &[], &[0]), [0.0; 3]);
    assert!(gather(0, &table, &[1, 2]).is_empty());
}
