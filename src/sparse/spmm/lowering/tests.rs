use super::lanes;

#[test]
fn lanes_balance_idle_lanes_and_teams() {
    assert_eq!(
        [1, 2, 3, 8, 9, 16, 31, 32, 33, 64].map(|chunks| lanes(chunks, 32)),
        [1, 2, 4, 8, 16, 16, 32, 32, 16, 32]
    );
    assert_eq!([3, 8, 9, 1000].map(|chunks| lanes(chunks, 8)), [4, 8, 8, 8]);
}
