use super::*;

#[test]
fn driver_errors_name_the_cause_and_the_remedy() {
    use sys::CUresult as R;
    let of = |version, code| usable(version, code).map_err(|e| (e.kind(), e.to_string()));
    assert_eq!(of(Some(12000), R::CUDA_SUCCESS), Ok(12000));
    let cases = [
        (None, R::CUDA_SUCCESS, ErrorKind::NoAdapter, "install NVIDIA's driver"),
        (Some(11040), R::CUDA_SUCCESS, ErrorKind::Unsupported, "supports CUDA 11.4, but 12.0 or newer is needed"),
        (Some(12040), R::CUDA_ERROR_NO_DEVICE, ErrorKind::NoAdapter, "finds no device"),
        (Some(12040), R::CUDA_ERROR_STUB_LIBRARY, ErrorKind::NoAdapter, "only a stub"),
    ];
    for (version, code, kind, words) in cases {
        let (got, text) = of(version, code).unwrap_err();
        assert!(got == kind && text.contains(words), "{got:?} {text}");
    }
}
