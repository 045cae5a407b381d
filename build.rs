//! Embeds every `.wgsl` file under `shaders/`, so that adding a kernel means adding a file.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

fn collect(dir: &Path, prefix: &str, found: &mut Vec<(String, String)>) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", dir.display());
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let Some(stem) = path.file_stem().and_then(|s| s.to_str()) else {
            continue;
        };
        let name = if prefix.is_empty() { stem.to_owned() } else { format!("{prefix}/{stem}") };
        if path.is_dir() {
            collect(&path, &name, found)?;
        } else if path.extension().is_some_and(|e| e == "wgsl") {
            println!("cargo::rerun-if-changed={}", path.display());
            found.push((name, path.display().to_string()));
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("shaders");
    let mut found = Vec::new();
    collect(&root, "", &mut found)?;
    found.sort();
    let mut out = String::from("static SOURCES: &[(&str, &str)] = &[\n");
    for (name, path) in &found {
        writeln!(out, "    ({name:?}, include_str!({path:?})),")?;
    }
    out.push_str("];\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("shaders.rs"), out)?;
    Ok(())
}
