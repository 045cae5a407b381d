//! The store of a build without the feature `disk-cache`. It keeps nothing.

use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct NoStore;

impl NoStore {
    pub(crate) fn load(&self, _: &str, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    pub(crate) fn save(&self, _: &str, _: &[u8], _: &[u8]) {}

    pub(crate) fn update(&self, _: &str, _: &[u8], _: impl FnOnce(Option<Vec<u8>>) -> Vec<u8>) {}

    pub(crate) fn count(&self, _: bool, _: Duration) {}
}
