use super::*;

#[test]
fn modes_by_hand() {
    let of = |mode| pad_axes(&PadAxes::new(&[3], &[[4, 2]], mode), &[1, 2, 3]).unwrap();
    assert_eq!(of(PadMode::Constant(-7.9)), [-7, -7, -7, -7, 1, 2, 3, -7, -7]);
    assert_eq!(of(PadMode::Edge), [1, 1, 1, 1, 1, 2, 3, 3, 3]);
    assert_eq!(of(PadMode::Wrap), [3, 1, 2, 3, 1, 2, 3, 1, 2]);
    assert_eq!(of(PadMode::Reflect), [1, 2, 3, 2, 1, 2, 3, 2, 1]);
    let one = PadAxes::new(&[1], &[[2, 1]], PadMode::Reflect);
    assert_eq!(pad_axes(&one, &[5u8]).unwrap(), [5; 4]);
    let rows = PadAxes::new(&[1, 2], &[[1, 0], [0, 1]], PadMode::Constant(300.0));
    assert_eq!(pad_axes(&rows, &[5u8, 6]).unwrap(), [255, 255, 255, 5, 6, 255]);
}
