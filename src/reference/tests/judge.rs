use super::*;

#[test]
fn difference_names_the_first_wrong_element() {
    let of = |x: &[f32]| HostArray::new(&[x.len()], x.to_vec()).unwrap();
    let exact = Wanted::exact(&[3], vec![1.0f32, 0.0, f32::NAN]).unwrap();
    let same = of(&[1.0, 0.0, f32::NAN]);
    assert_eq!(exact.difference(&same), None);
    assert!(exact.difference(&of(&[1.0, -0.0, f32::NAN])).unwrap().contains("element 1 is -0.0"));
    assert!(exact.difference(&of(&[1.0, 0.0])).unwrap().contains("(2,) of f32, expected (3,) of f32"));
    let near = Wanted::near(&[3], vec![1.0f32, 0.0, f32::NAN], vec![0.5, 0.0, f64::INFINITY]).unwrap();
    assert_eq!(near.difference(&same), None);
    assert_eq!(near.difference(&of(&[1.5, -0.0, 7.0])), None);
    for wrong in [[1.6, 0.0, 0.0], [1.0, 1e-9, 0.0], [f32::NAN, 0.0, 0.0]] {
        assert!(near.difference(&of(&wrong)).is_some(), "{wrong:?}");
    }
}
