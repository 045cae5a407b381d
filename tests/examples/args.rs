//! All examples: how they parse their arguments.

use std::fs;
use std::path::{Path, PathBuf};

/// Every source of the examples.
fn sources(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
}

#[test]
fn every_example_uses_the_parser_that_rejects_repeated_keys() {
    let mut all = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("examples"), &mut all);
    let programs: Vec<_> = all.iter().filter(|(_, text)| text.contains("\nfn main()")).collect();
    assert!(programs.len() > 20, "{}", programs.len());
    for (path, text) in programs {
        let name = path.display();
        // An example of several files parses its command line in its own file.
        let cli = path.with_file_name("cli.rs");
        let reads = |text: &str| text.contains("Args::new(") && text.contains("Short('h')");
        let cli =
            if path.ends_with("main.rs") && cli.exists() { fs::read_to_string(cli).unwrap() } else { text.clone() };
        assert!(reads(&cli), "{name}: arguments are read in a way of its own, or --help is not answered");
        assert!(!text.contains("env::args"), "{name}: arguments are read in a way of its own");
    }
}
