//! The embedded CUDA C++ files and their includes.

use crate::error::{Result, err};

include!(concat!(env!("OUT_DIR"), "/cuda.rs"));

/// Lists all embedded files: `primitives/scan_grid.cu`, `cuda/barrier.cuh`, ...
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    CUDA_SOURCES.iter().map(|(name, _)| *name)
}

fn find(name: &str) -> Option<(&'static str, &'static str)> {
    CUDA_SOURCES.binary_search_by_key(&name, |(n, _)| n).ok().map(|i| CUDA_SOURCES[i])
}

/// Returns the text of `shaders/NAME.cu`, and the name and text of each embedded file that it includes, directly or
/// not.
pub(super) fn with_includes(name: &str) -> Result<(&'static str, Vec<(&'static str, &'static str)>)> {
    let missing = |file: &str, by: &str| {
        let all: Vec<_> = names().collect();
        err!(Shader, "{by}: no file shaders/{file}; the library has: {}", all.join(", "))
    };
    let file = format!("{name}.cu");
    let (_, text) = find(&file).ok_or_else(|| missing(&file, "cuda"))?;
    let mut headers: Vec<(&str, &str)> = Vec::new();
    let mut next = vec![(name, text)];
    while let Some((by, text)) = next.pop() {
        for included in text.lines().filter_map(included) {
            if headers.iter().any(|(known, _)| *known == included) {
                continue;
            }
            let found = find(included).ok_or_else(|| missing(included, by))?;
            headers.push(found);
            next.push(found);
        }
    }
    Ok((text, headers))
}

fn included(line: &str) -> Option<&str> {
    let name = line.trim().strip_prefix('#')?.trim_start().strip_prefix("include")?.trim_start();
    name.strip_prefix('"')?.split('"').next()
}

#[cfg(test)]
mod tests;
