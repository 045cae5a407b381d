//! Every variant of `LogSoftmaxBackward` against the reference.

super::training::softmax_backward_tests!(
    LogSoftmaxBackward,
    log_softmax_backward,
    log_softmax_backward_bound,
    log_softmax
);
