//! Every variant of `LogSoftmax` against the reference.

super::rows::softmax_tests!(LogSoftmax, log_softmax, log_softmax_bound);
