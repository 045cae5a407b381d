use super::*;
use crate::attention::Paging;

#[test]
fn rows_follow_the_existing_ones() {
    let op = KvAppend::new([2, 1, 2, 8], 3);
    let new: Vec<f32> = (0..32).map(|i| (i / 8 + 1) as f32).collect();
    let mut cache = vec![0f32; 48];
    kv_append(&op, &new, &[1, 2], None, &mut cache);
    let firsts: Vec<f32> = cache.into_iter().step_by(8).collect();
    assert_eq!(firsts, [0.0, 1.0, 2.0, 0.0, 0.0, 3.0]);
}

#[test]
fn missing_pages_are_skipped() {
    let op = KvAppend::new([1, 1, 2, 8], 32).paged(Paging { tokens: 16, pages: 2 });
    let mut cache = vec![0f32; 256];
    kv_append(&op, &[5f32; 16], &[15], Some(&[1, 7]), &mut cache);
    assert_eq!(cache.iter().position(|x| *x == 5.0), Some(31 * 8));
    assert_eq!(cache.iter().filter(|x| **x == 5.0).count(), 8);
}

#[test]
fn quantised_rows_are_scaled_by_their_largest() {
    let x = [12.7f32, 0.05, -0.15, 0.0, 0.0, 0.0, 0.0, 0.0];
    let got = stored(KvType::Int8, &x);
    assert!((got[0] - 12.7).abs() < 1e-5 && (got[2] + 0.2).abs() < 0.11, "{got:?}");
    assert_eq!(stored(KvType::Fp8, &[448.0, 1.0, 17.0])[..], [448.0, 1.0, 16.0]);
    assert_eq!(stored(KvType::Int8, &[0.0; 3]), [0.0; 3]);
}
