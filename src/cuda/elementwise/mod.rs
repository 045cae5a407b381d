mod zip;

pub(super) use zip::samples;
