use super::*;

#[test]
fn masks_follow_the_words() {
    let op = Dropout::new(0.5, 8).seed(3).offset(4);
    let y = dropout(&op, &[1.5f32; 8]);
    let block = |i| philox([i, 0, 0, 0], 3);
    let words = [block(1), block(2)].concat();
    let want: Vec<f64> = words.iter().map(|w| if *w >= 1 << 31 { 3.0 } else { 0.0 }).collect();
    assert_eq!(y, want);
    assert_eq!(dropout(&Dropout::new(0.0, 3), &[1.0f32, -2.0, 3.0]), [1.0, -2.0, 3.0]);
}
