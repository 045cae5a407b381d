mod scan;

pub(super) use scan::samples;
