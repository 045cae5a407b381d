//! How prose stands on the page: comments and Markdown end at column 120. Tables, links and code may be wider.

use crate::architecture::files_below;
use std::path::Path;

const WIDTH: usize = 120;

/// The text of a line of prose, without the marks of a comment; none for code, tables and links, which cannot wrap.
fn prose(line: &str, markdown: bool) -> Option<&str> {
    let text = line.trim_start();
    let text = if markdown { text } else { text.strip_prefix("//")?.trim_start_matches(['/', '!', ' ']) };
    (!text.starts_with('|') && !text.contains("](") && !text.contains("://")).then_some(text)
}

#[test]
fn prose_is_at_most_120_columns_wide() {
    let mut wide = Vec::new();
    let folders = ["src", "shaders", "tests", "examples", "benches"];
    let endings = ["rs", "wgsl", "cu", "cuh"];
    let mut files: Vec<_> =
        folders.iter().flat_map(|f| endings.iter().flat_map(|ending| files_below(f, ending))).collect();
    files.extend(["src", "shaders", "examples"].iter().flat_map(|f| files_below(f, "md")));
    for name in ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        files.push((path, text));
    }
    assert!(files.len() > 500, "only {} files were found", files.len());
    for (path, text) in &files {
        let markdown = path.extension().is_some_and(|e| e == "md");
        let mut fenced = false;
        for (i, line) in text.lines().enumerate() {
            fenced ^= markdown && line.starts_with("```");
            if !fenced && line.chars().count() > WIDTH && prose(line, markdown).is_some() {
                wide.push(format!("{}:{}", path.display(), i + 1));
            }
        }
    }
    assert!(wide.is_empty(), "prose wider than {WIDTH} columns:\n{}", wide.join("\n"));
}
