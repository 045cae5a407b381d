use super::*;

#[test]
fn numbers_stay_in_their_range() {
    let floats = numbers(DType::F32, 1000, None, 1).unwrap();
    let floats: Vec<f32> = floats.into_iter().map(f32::from_bits).collect();
    assert!(floats.iter().all(|x| (-1.0..1.0).contains(x)));
    assert!(floats.iter().any(|x| *x < -0.9) && floats.iter().any(|x| *x > 0.9));
    let bins = numbers(DType::U32, 1000, Some(7), 1).unwrap();
    assert!((0..7).all(|bin| bins.contains(&bin)) && bins.iter().all(|bin| *bin < 7));
    let bytes = numbers(DType::U8, 1001, Some(7), 1).unwrap();
    assert_eq!(bytes.len(), 251);
    assert!(bytes.iter().flat_map(|w| w.to_le_bytes()).all(|b| b < 7));
    assert_ne!(numbers(DType::U32, 4, None, 1).unwrap(), numbers(DType::U32, 4, None, 2).unwrap());
}
