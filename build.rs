//! Embeds the `.wgsl` files under `shaders/` of the families whose features are on, so that adding a kernel means
//! adding a file; with the feature `cuda` also their `.cu` and `.cuh` files.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

/// The folders that only some features need. The others, such as `workgroup`, are always embedded.
const FOLDERS: [(&str, &[&str]); 9] = [
    ("attention", &["ATTENTION"]),
    ("conv", &["CONV"]),
    ("dense", &["DENSE"]),
    ("image", &["IMAGE"]),
    ("nn", &["NN"]),
    ("primitives", &["PRIMITIVES"]),
    ("quantize", &["QUANTIZE", "ATTENTION"]),
    ("rows", &["NN", "QUANTIZE"]),
    ("sparse", &["SPARSE"]),
];

/// Whether a folder under `shaders/` is needed.
fn wanted(folder: &str) -> bool {
    let features = FOLDERS.iter().find(|(name, _)| *name == folder).map(|(_, features)| features);
    let on = |feature: &&str| env::var_os(format!("CARGO_FEATURE_{feature}")).is_some();
    features.is_none_or(|features| features.iter().any(on))
}

/// A name and a path for each file.
type Found = Vec<(String, String)>;

fn collect(dir: &Path, prefix: &str, found: &mut Found, cuda: &mut Found) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", dir.display());
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let Some(stem) = path.file_stem().and_then(|s| s.to_str()) else {
            continue;
        };
        let name = if prefix.is_empty() { stem.to_owned() } else { format!("{prefix}/{stem}") };
        if path.is_dir() {
            if prefix.is_empty() && !wanted(&name) {
                continue;
            }
            collect(&path, &name, found, cuda)?;
        } else if path.extension().is_some_and(|e| e == "wgsl") {
            println!("cargo::rerun-if-changed={}", path.display());
            found.push((name, path.display().to_string()));
        } else if let Some(ending) = path.extension().filter(|e| *e == "cu" || *e == "cuh") {
            println!("cargo::rerun-if-changed={}", path.display());
            cuda.push((format!("{name}.{}", ending.display()), path.display().to_string()));
        }
    }
    Ok(())
}

/// Writes a sorted table of the files' texts.
fn embed(table: &str, mut found: Found, file: &str) -> Result<(), Box<dyn std::error::Error>> {
    found.sort();
    let mut out = format!("static {table}: &[(&str, &str)] = &[\n");
    for (name, path) in &found {
        writeln!(out, "    ({name:?}, include_str!({path:?})),")?;
    }
    out.push_str("];\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join(file), out)?;
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("shaders");
    let (mut found, mut cuda) = (Vec::new(), Vec::new());
    collect(&root, "", &mut found, &mut cuda)?;
    embed("SOURCES", found, "shaders.rs")?;
    if env::var_os("CARGO_FEATURE_CUDA").is_some() {
        embed("CUDA_SOURCES", cuda, "cuda.rs")?;
    }
    Ok(())
}
