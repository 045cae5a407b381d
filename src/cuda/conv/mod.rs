#[allow(clippy::module_inception, reason = "an op has a file of its name")]
mod conv;

pub(super) use conv::samples;
