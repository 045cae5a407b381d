use super::*;

#[test]
fn finds_includes() {
    assert_eq!(included("#include \"cuda/a.cuh\""), Some("cuda/a.cuh"));
    assert_eq!(included("  # include \"cuda/a.cuh\" // why"), Some("cuda/a.cuh"));
    assert_eq!(included("#include <mma.h>"), None);
    assert_eq!(included("// #include \"cuda/a.cuh\""), None);
}

#[test]
fn a_missing_file_is_named() {
    let message = with_includes("primitives/nothing").unwrap_err().to_string();
    assert!(message.contains("shaders/primitives/nothing.cu"), "{message}");
}
