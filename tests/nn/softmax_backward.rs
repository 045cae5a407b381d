//! Every variant of `SoftmaxBackward` against the reference.

super::training::softmax_backward_tests!(SoftmaxBackward, softmax_backward, softmax_backward_bound, softmax);
