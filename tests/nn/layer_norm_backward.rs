//! Every variant of `LayerNormBackward` against the reference.

super::training::norm_backward_tests!(LayerNormBackward, layer_norm_backward, layer_norm_backward_bound);
