use super::*;

#[test]
fn chooses_backends_by_name_and_adapters_by_part_of_their_name() {
    let card = |name: &str, driver: &str, backend: &str| {
        let (name, driver, backend) = (name.to_owned(), driver.to_owned(), backend.to_owned());
        DeviceProfile { name, driver, backend, ..DeviceProfile::h100() }
    };
    let all = [card("SwiftShader", "Google glitter", "vulkan"), card("llvmpipe", "Mesa", "gl")];
    let first = |text: &str| (0..2).find(|i| AdapterFilter::Name(text.to_owned()).fits(*i, &all[*i]));
    for (text, found) in [
        ("gl", Some(1)),
        ("GL", Some(1)),
        ("vulkan", Some(0)),
        ("metal", None),
        ("mesa", Some(1)),
        ("gle g", Some(0)),
        ("", Some(0)),
        ("card", None),
    ] {
        assert_eq!(first(text), found, "{text}");
    }
    assert!(AdapterFilter::Index(1).fits(1, &all[1]) && !AdapterFilter::Index(1).fits(0, &all[0]));
}
