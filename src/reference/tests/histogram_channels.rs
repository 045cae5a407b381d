use super::*;

#[test]
fn channels_by_hand() {
    let op = HistogramChannels::new(2, 3, 4).active(2);
    assert_eq!(histogram_channels(&op, &[0u8, 3, 1, 0, 4, 1]).unwrap(), [2, 0, 0, 0, 0, 0, 0, 1]);
}
