//! Every variant of `RmsNormBackward` against the reference.

super::training::norm_backward_tests!(RmsNormBackward, rms_norm_backward, rms_norm_backward_bound);
