include!(concat!(env!("OUT_DIR"), "/shaders.rs"));

/// Names of all embedded files, without their extension: `primitives/reduce`, `op/add`, ...
pub fn names() -> impl Iterator<Item = &'static str> {
    SOURCES.iter().map(|(name, _)| *name)
}

/// Returns the text of the file `name` under `shaders/`.
pub fn source(name: &str) -> Option<&'static str> {
    SOURCES.binary_search_by_key(&name, |(n, _)| n).ok().map(|i| SOURCES[i].1)
}
