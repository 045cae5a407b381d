use super::*;
use crate::ErrorKind;

#[test]
fn no_driver_says_what_to_install() {
    let error = no_adapter(None);
    assert_eq!(error.kind(), ErrorKind::NoAdapter);
    for system in ["Debian", "apt install", "Fedora", "dnf install", "Arch", "pacman", "Windows", "macOS"] {
        assert!(error.to_string().contains(system), "{system}: {error}");
    }
}

#[test]
fn backends_that_hide_all_adapters_are_named() {
    for (limit, kind, text) in [
        ("nonsense", ErrorKind::InvalidArgument, "`nonsense`, which names no backend; list some of vulkan, metal"),
        ("", ErrorKind::InvalidArgument, "``, which names no backend;"),
        ("metal", ErrorKind::NoAdapter, "allows only `metal`, which has no adapter on this machine; list"),
    ] {
        let error = no_adapter(Some(OsStr::new(limit)));
        assert_eq!(error.kind(), kind);
        let shown = error.to_string();
        assert!(shown.contains(BACKENDS) && shown.contains(text) && !shown.contains("mesa"), "{shown}");
    }
}
