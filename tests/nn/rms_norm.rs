//! Every variant of `RmsNorm` against the reference.

super::rows::norm_tests!(RmsNorm, rms_norm, rms_norm_bound);
