//! wgpu's major version: `Cargo.toml` states it, and every other file that names it agrees.

use std::fs;
use std::path::Path;

const MANIFEST: &str = include_str!("../Cargo.toml");

/// What lies between `start` and the next `end`, for each `start` in `text`.
fn between<'a>(text: &'a str, start: &str, end: &str) -> Vec<&'a str> {
    text.split(start).skip(1).filter_map(|rest| rest.split(end).next()).collect()
}

/// The major version of wgpu that `Cargo.toml` asks for.
fn major() -> &'static str {
    let found = between(MANIFEST, "\nwgpu = { version = \"", "\"");
    assert!(found.iter().all(|other| *other == found[0]), "Cargo.toml asks for wgpu {found:?}");
    found[0]
}

/// `0.1` of `version = "0.1.0"`.
fn minor() -> &'static str {
    env!("CARGO_PKG_VERSION").rsplit_once('.').unwrap().0
}

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The numbers that follow the word wgpu or naga, as in "wgpu 30", with their lines.
fn named(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> =
            line.split(|c: char| !(c.is_alphanumeric() || "-_.".contains(c))).filter(|w| !w.is_empty()).collect();
        for pair in words.windows(2) {
            let number = pair[1].trim_end_matches('.');
            if ["wgpu", "naga"].contains(&pair[0]) && number.starts_with(|c: char| c.is_ascii_digit()) {
                found.push((number, line));
            }
        }
    }
    found
}

#[test]
fn versions_are_found_in_prose() {
    let text = "tilework 0.1 uses wgpu 30, and\negui-wgpu 0.37; wgpu's 4; `naga 29.0.1`. On wgpu 31.";
    let numbers: Vec<&str> = named(text).into_iter().map(|(number, _)| number).collect();
    assert_eq!(numbers, ["30", "29.0.1", "31"]);
}

/// Other manifests and every lock file have the major that `Cargo.toml` asks for.
#[test]
fn manifests_agree_on_the_major_of_wgpu() {
    let major = major();
    let naga = between(MANIFEST, "\nnaga = { version = \"", "\"");
    assert_eq!(naga, [major; 2], "Cargo.toml: naga, as dependency and for tests");
    assert_eq!(between(&read("tests/fuzz/Cargo.toml"), "\nwgpu = { version = \"", "\""), [major]);
    for lock in ["Cargo.lock", "tests/fuzz/Cargo.lock", "examples/web/Cargo.lock"] {
        let text = read(lock);
        for name in ["wgpu", "naga"] {
            let found = between(&text, &format!("\nname = \"{name}\"\nversion = \""), ".");
            assert_eq!(found, [major], "{lock}: {name}");
        }
    }
}

/// README, changelog, guides and CONTRIBUTING.md name the version of `Cargo.toml`, and no other.
#[test]
fn documents_agree_on_the_major_of_wgpu() {
    let (major, minor) = (major(), minor());
    let rust = between(MANIFEST, "\nrust-version = \"", "\"")[0];
    for (path, line) in [
        ("README.md", format!("\ntilework = \"{minor}\" # with wgpu {major},")),
        ("src/guides/own_device.md", format!("tilework {minor} uses wgpu {major},")),
        ("CONTRIBUTING.md", format!("\n| {minor} | {major} | {major} | {rust} |\n")),
        ("CHANGELOG.md", format!("for wgpu {major}.")),
    ] {
        assert!(read(path).contains(&line), "{path} has no `{}`", line.trim());
    }
    let guides = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/guides");
    let guides = fs::read_dir(guides).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut pages: Vec<String> = guides.map(|name| format!("src/guides/{name}")).collect();
    pages.extend(["README.md", "CONTRIBUTING.md", "src/architecture.md", "src/lib.rs"].map(str::to_owned));
    assert!(pages.len() > 8, "{pages:?}");
    for page in pages {
        for (number, line) in named(&read(&page)) {
            assert_eq!(number, major, "{page}: {line}");
        }
    }
}

/// The programs of other crates in the guide are compiled with the versions that the guide names.
#[test]
fn the_guide_names_the_hosts_that_are_compiled() {
    let (guide, script) = (read("src/guides/own_device.md"), read(".ci/hosts"));
    for host in ["egui-wgpu", "bevy_render", "vello"] {
        let compiled = between(&script, &format!("{host}@"), "\n")[0];
        let number: String = compiled.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        assert!(guide.contains(&format!("{host} {number}")), "own_device.md does not name {host} {number}");
    }
}
