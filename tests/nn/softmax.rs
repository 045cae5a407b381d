//! Every variant of `Softmax` against the reference.

super::rows::softmax_tests!(Softmax, softmax, softmax_bound);
