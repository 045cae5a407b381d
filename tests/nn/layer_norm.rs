//! Every variant of `LayerNorm` against the reference.

super::rows::norm_tests!(LayerNorm, layer_norm, layer_norm_bound);
