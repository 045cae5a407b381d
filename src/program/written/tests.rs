use super::*;

#[test]
fn rejects_reads_of_unwritten_memory_and_suggests_a_swap() {
    let (full, empty) = (Written::default(), Written::default());
    full.set();
    let part = |name, access, written, len| Use { name, access, written, dtype: DType::F32, len };
    let check = |uses: &[Use<'_>]| check_read("scan", uses, "zeros").map_err(|e| e.to_string());
    let (input, output) = (part("input", Access::Read, &empty, 4), part("output", Access::Write, &full, 4));
    let never = "scan: input was allocated and never written";
    let swapped = format!("{never}; are input and output swapped? Write it first, or use zeros");
    assert_eq!(check(&[input, output]), Err(swapped));
    let alone = Err(format!("{never}; write it first, or use zeros"));
    assert_eq!(check(&[input, Use { len: 5, ..output }]), alone);
    assert_eq!(check(&[input, Use { dtype: DType::I32, ..output }]), alone);
    assert_eq!(check(&[input, Use { written: &empty, ..output }]), alone);
    assert_eq!(check(&[Use { len: 0, ..input }, output]), Ok(()));
    assert_eq!(check(&[Use { access: Access::ReadWrite, ..input }, output]), Ok(()));
    assert_eq!(check(&[Use { written: &full, ..input }, Use { written: &empty, ..output }]), Ok(()));
    assert_eq!(check(&[]), Ok(()));
}
