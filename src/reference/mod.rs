//! Sequential references of the ops, short enough to check by eye. Floats are computed in `f64` and rounded once at the
//! end; integers are exact and wrap at the end. Tests compare every variant with them; functions `NAME_bound` bound the
//! error of f32 arithmetic.

mod activation;
#[cfg(feature = "nn")]
mod activation_backward;
#[cfg(feature = "nn")]
mod adam;
#[cfg(feature = "primitives")]
mod adaptive_grid;
#[cfg(feature = "primitives")]
mod adjacent_difference;
#[cfg(feature = "primitives")]
mod argsort;
#[cfg(feature = "primitives")]
mod asum;
#[cfg(feature = "attention")]
mod attention;
#[cfg(feature = "attention")]
mod attention_backward;
mod axpy;
#[cfg(feature = "nn")]
mod batch_norm;
#[cfg(feature = "nn")]
mod batch_norm_backward;
#[cfg(feature = "nn")]
mod batch_norm_train;
#[cfg(feature = "nn")]
mod bias_backward;
#[cfg(feature = "nn")]
mod binary_cross_entropy;
#[cfg(feature = "image")]
mod blur;
#[cfg(feature = "quantize")]
mod cast;
#[cfg(feature = "primitives")]
mod categorical;
#[cfg(feature = "dense")]
mod caxpy;
#[cfg(feature = "dense")]
mod cdot;
#[cfg(feature = "dense")]
mod cgemm;
#[cfg(feature = "dense")]
mod cgemv;
#[cfg(feature = "dense")]
mod concatenate;
#[cfg(feature = "sparse")]
mod conjugate_gradient;
#[cfg(feature = "conv")]
mod conv;
#[cfg(feature = "conv")]
mod conv_backward_data;
#[cfg(feature = "conv")]
mod conv_backward_weights;
#[cfg(feature = "conv")]
mod conv_transpose;
#[cfg(feature = "nn")]
mod cross_entropy;
#[cfg(feature = "quantize")]
mod dequantize;
#[cfg(feature = "primitives")]
mod dot;
#[cfg(feature = "nn")]
mod dropout;
#[cfg(feature = "image")]
mod equalize;
#[cfg(feature = "conv")]
mod filter1d;
#[cfg(feature = "conv")]
mod filter2d;
#[cfg(feature = "conv")]
mod filter3d;
#[cfg(feature = "primitives")]
mod find;
#[cfg(feature = "primitives")]
mod frontier;
#[cfg(feature = "primitives")]
mod gather;
#[cfg(feature = "image")]
mod gaussian;
#[cfg(feature = "dense")]
mod gbmv;
#[cfg(feature = "dense")]
mod gemm;
#[cfg(feature = "dense")]
mod gemm_batched;
#[cfg(feature = "dense")]
mod gemm_grouped;
#[cfg(feature = "quantize")]
mod gemm_int8;
#[cfg(feature = "dense")]
mod gemv;
#[cfg(feature = "dense")]
mod ger;
#[cfg(feature = "image")]
mod grey;
#[cfg(feature = "primitives")]
mod histogram;
#[cfg(feature = "primitives")]
mod histogram_2d;
#[cfg(feature = "primitives")]
mod histogram_channels;
#[cfg(feature = "primitives")]
mod iamax;
#[cfg(feature = "primitives")]
mod iamin;
#[cfg(feature = "primitives")]
mod is_sorted;
mod judge;
#[cfg(feature = "attention")]
mod kv_append;
#[cfg(feature = "nn")]
mod layer_norm;
#[cfg(feature = "nn")]
mod layer_norm_backward;
#[cfg(feature = "nn")]
mod log_softmax;
#[cfg(feature = "nn")]
mod log_softmax_backward;
#[cfg(feature = "primitives")]
mod lower_bound;
mod map;
#[cfg(feature = "nn")]
mod mean_pool;
#[cfg(feature = "image")]
mod median;
#[cfg(feature = "primitives")]
mod merge;
#[cfg(feature = "primitives")]
mod merge_sort;
#[cfg(feature = "primitives")]
mod nrm2;
#[cfg(feature = "primitives")]
mod nth_element;
mod number;
#[cfg(feature = "dense")]
mod pad_axes;
#[cfg(feature = "primitives")]
mod partition;
#[cfg(feature = "dense")]
mod permute_axes;
#[cfg(feature = "nn")]
mod pool;
#[cfg(feature = "nn")]
mod pool_backward;
#[cfg(feature = "nn")]
mod pool_backward_weights;
#[cfg(feature = "sparse")]
mod power;
#[cfg(feature = "primitives")]
mod quadtree;
#[cfg(feature = "primitives")]
mod quantile;
#[cfg(feature = "quantize")]
mod quantize;
#[cfg(feature = "primitives")]
mod random;
#[cfg(feature = "primitives")]
mod reduce;
#[cfg(feature = "primitives")]
mod reduce_by_key;
#[cfg(feature = "primitives")]
mod reduce_offsets;
#[cfg(feature = "primitives")]
mod reverse;
#[cfg(feature = "nn")]
mod rms_norm;
#[cfg(feature = "nn")]
mod rms_norm_backward;
#[cfg(feature = "nn")]
mod rope;
#[cfg(feature = "dense")]
mod rot;
#[cfg(feature = "primitives")]
mod rotate;
#[cfg(feature = "dense")]
mod rotg;
mod rotmg;
#[cfg(feature = "primitives")]
mod run_length;
#[cfg(feature = "nn")]
mod sample_logits;
mod scal;
#[cfg(feature = "primitives")]
mod scan;
#[cfg(feature = "primitives")]
mod scan_by_key;
#[cfg(feature = "primitives")]
mod scan_offsets;
#[cfg(feature = "primitives")]
mod scatter;
#[cfg(feature = "primitives")]
mod segmented_reduce;
#[cfg(feature = "primitives")]
mod segmented_scan;
#[cfg(feature = "primitives")]
mod segmented_sort;
#[cfg(feature = "primitives")]
mod select;
#[cfg(feature = "primitives")]
mod select_columns;
#[cfg(feature = "primitives")]
mod set_difference;
#[cfg(feature = "primitives")]
mod set_intersection;
#[cfg(feature = "primitives")]
mod set_union;
#[cfg(feature = "nn")]
mod sgd;
#[cfg(feature = "primitives")]
mod shuffle;
#[cfg(feature = "image")]
mod sobel;
#[cfg(feature = "nn")]
mod softmax;
#[cfg(feature = "nn")]
mod softmax_backward;
#[cfg(feature = "primitives")]
mod sort;
#[cfg(feature = "sparse")]
mod spconvert;
#[cfg(feature = "sparse")]
mod spinsert;
#[cfg(feature = "primitives")]
mod split_parts;
#[cfg(feature = "sparse")]
mod spmm;
#[cfg(feature = "sparse")]
mod spmv;
#[cfg(feature = "nn")]
mod squared_error;
#[cfg(feature = "primitives")]
mod states;
#[cfg(feature = "dense")]
mod strided_copy;
#[cfg(feature = "dense")]
mod swap;
#[cfg(feature = "dense")]
mod symm;
#[cfg(feature = "dense")]
mod symv;
#[cfg(feature = "dense")]
mod syr;
#[cfg(feature = "dense")]
mod syr2;
#[cfg(feature = "dense")]
mod syr2k;
#[cfg(feature = "dense")]
mod syrk;
#[cfg(feature = "primitives")]
mod top_k;
#[cfg(feature = "primitives")]
mod top_k_rows;
mod transform;
#[cfg(feature = "dense")]
mod transpose;
#[cfg(feature = "dense")]
mod trmm;
#[cfg(feature = "dense")]
mod trmv;
#[cfg(feature = "dense")]
mod trsm;
#[cfg(feature = "dense")]
mod trsv;
#[cfg(feature = "primitives")]
mod unique;
#[cfg(feature = "primitives")]
mod unique_by_key;
#[cfg(feature = "primitives")]
mod upper_bound;
#[cfg(feature = "primitives")]
mod weighted_histogram;
mod zip;

pub use crate::element::{fp8_code, fp8_value};
pub use activation::activate;
#[cfg(feature = "nn")]
pub use activation_backward::{activation_backward, activation_backward_bound};
#[cfg(feature = "nn")]
pub use adam::{adam, adam_bound};
#[cfg(feature = "primitives")]
pub use adaptive_grid::{adaptive_grid, adaptive_grid_bound, adaptive_grid_pixel};
#[cfg(feature = "primitives")]
pub use adjacent_difference::{adjacent_difference, adjacent_difference_bound};
#[cfg(feature = "primitives")]
pub use asum::{asum, asum_bound};
#[cfg(feature = "attention")]
pub use attention::{
    AttentionInputs, attention, attention_bound, attention_logsumexp, attention_logsumexp_bound,
    attention_scores, attention_scores_bound,
};
#[cfg(feature = "attention")]
pub use attention_backward::{
    attention_backward, attention_backward_bound, attention_backward_saved, attention_backward_saved_bound,
};
pub use axpy::{axpy, axpy_bound};
#[cfg(feature = "nn")]
pub use batch_norm::{batch_norm, batch_norm_bound};
#[cfg(feature = "nn")]
pub use batch_norm_backward::{batch_norm_backward, batch_norm_backward_bound};
#[cfg(feature = "nn")]
pub use batch_norm_train::{batch_norm_train, batch_norm_train_bound};
#[cfg(feature = "nn")]
pub use bias_backward::{bias_backward, bias_backward_bound};
#[cfg(feature = "nn")]
pub use binary_cross_entropy::{binary_cross_entropy, binary_cross_entropy_bound};
#[cfg(feature = "image")]
pub use blur::{blur, blur_bound};
#[cfg(feature = "quantize")]
pub use cast::cast;
#[cfg(feature = "primitives")]
pub use categorical::categorical;
#[cfg(feature = "dense")]
pub use caxpy::{caxpy, caxpy_bound};
#[cfg(feature = "dense")]
pub use cdot::{cdot, cdot_bound};
#[cfg(feature = "dense")]
pub use cgemm::{cgemm, cgemm_bound};
#[cfg(feature = "dense")]
pub use cgemv::{cgemv, cgemv_bound};
#[cfg(feature = "dense")]
pub use concatenate::concatenate;
#[cfg(feature = "sparse")]
pub use conjugate_gradient::conjugate_gradient;
#[cfg(feature = "conv")]
pub use conv::{conv, conv_bound};
#[cfg(feature = "conv")]
pub use conv_backward_data::{conv_backward_data, conv_backward_data_bound};
#[cfg(feature = "conv")]
pub use conv_backward_weights::{
    conv_backward_bias, conv_backward_bias_bound, conv_backward_weights, conv_backward_weights_bound,
};
#[cfg(feature = "conv")]
pub use conv_transpose::{conv_transpose, conv_transpose_bound};
#[cfg(feature = "nn")]
pub use cross_entropy::{cross_entropy, cross_entropy_bound};
#[cfg(feature = "quantize")]
pub use dequantize::{code_value, dequantize, dequantize_bound};
#[cfg(feature = "primitives")]
pub use dot::{dot, dot_bound};
#[cfg(feature = "nn")]
pub use dropout::{dropout, dropout_bound};
#[cfg(feature = "image")]
pub use equalize::{equalize, equalize_bound};
#[cfg(feature = "conv")]
pub use filter1d::{filter1d, filter1d_bound};
#[cfg(feature = "conv")]
pub use filter2d::{filter2d, filter2d_bound};
#[cfg(feature = "conv")]
pub use filter3d::{filter3d, filter3d_bound};
#[cfg(feature = "primitives")]
pub use find::find;
#[cfg(feature = "primitives")]
pub use frontier::frontier;
#[cfg(feature = "primitives")]
pub use gather::gather;
#[cfg(feature = "image")]
pub use gaussian::{gaussian, gaussian_bound};
#[cfg(feature = "dense")]
pub use gbmv::{gbmv, gbmv_bound};
#[cfg(feature = "dense")]
pub use gemm::{gemm, gemm_bound};
#[cfg(feature = "dense")]
pub use gemm_batched::{gemm_batched, gemm_batched_bound};
#[cfg(feature = "dense")]
pub use gemm_grouped::{gemm_grouped, gemm_grouped_bound};
#[cfg(feature = "quantize")]
pub use gemm_int8::{gemm_int8, gemm_int8_bound, gemm_int8_scaled};
#[cfg(feature = "dense")]
pub use gemv::{gemv, gemv_bound};
#[cfg(feature = "dense")]
pub use ger::{ger, ger_bound};
#[cfg(feature = "image")]
pub use grey::{grey, grey_bound};
#[cfg(feature = "primitives")]
pub use histogram::histogram;
#[cfg(feature = "primitives")]
pub use histogram_2d::histogram_2d;
#[cfg(feature = "primitives")]
pub use histogram_channels::histogram_channels;
#[cfg(feature = "primitives")]
pub use iamax::iamax;
#[cfg(feature = "primitives")]
pub use iamin::iamin;
#[cfg(feature = "primitives")]
pub use is_sorted::is_sorted;
pub use judge::{Wanted, wanted};
#[cfg(feature = "attention")]
pub use kv_append::kv_append;
#[cfg(feature = "nn")]
pub use layer_norm::{layer_norm, layer_norm_bound};
#[cfg(feature = "nn")]
pub use layer_norm_backward::{layer_norm_backward, layer_norm_backward_bound};
#[cfg(feature = "nn")]
pub use log_softmax::{log_softmax, log_softmax_bound};
#[cfg(feature = "nn")]
pub use log_softmax_backward::{log_softmax_backward, log_softmax_backward_bound};
#[cfg(feature = "primitives")]
pub use lower_bound::lower_bound;
pub use map::{map, map_bound};
#[cfg(feature = "nn")]
pub use mean_pool::{mean_pool, mean_pool_bound};
#[cfg(feature = "image")]
pub use median::median;
#[cfg(feature = "primitives")]
pub use merge::merge_positions;
#[cfg(feature = "primitives")]
pub use merge_sort::merge_sort_positions;
#[cfg(feature = "primitives")]
pub use nrm2::{nrm2, nrm2_bound};
#[cfg(feature = "primitives")]
pub use nth_element::nth_element;
pub use number::Number;
#[cfg(feature = "dense")]
pub use pad_axes::pad_axes;
#[cfg(feature = "primitives")]
pub use partition::partition;
#[cfg(feature = "dense")]
pub use permute_axes::permute_axes;
#[cfg(feature = "nn")]
pub use pool::{pool, pool_bound};
#[cfg(feature = "nn")]
pub use pool_backward::{pool_backward, pool_backward_bound};
#[cfg(feature = "nn")]
pub use pool_backward_weights::{pool_backward_weights, pool_backward_weights_bound};
#[cfg(feature = "sparse")]
pub use power::{page_rank, power_iteration};
#[cfg(feature = "primitives")]
pub use quadtree::{TreeSquare, quadtree, quadtree_square};
#[cfg(feature = "primitives")]
pub use quantile::{quantile, quantile_bound};
#[cfg(feature = "quantize")]
pub use quantize::{code, quantize, quantize_by};
#[cfg(feature = "primitives")]
pub use random::{philox, random_floats, random_words};
#[cfg(feature = "primitives")]
pub use reduce::{reduce, reduce_bound, reduce_with};
#[cfg(feature = "primitives")]
pub use reduce_by_key::{reduce_by_key, reduce_by_key_bound};
#[cfg(feature = "primitives")]
pub use reduce_offsets::{reduce_offsets, reduce_offsets_bound};
#[cfg(feature = "primitives")]
pub use reverse::reverse;
#[cfg(feature = "nn")]
pub use rms_norm::{rms_norm, rms_norm_bound};
#[cfg(feature = "nn")]
pub use rms_norm_backward::{rms_norm_backward, rms_norm_backward_bound};
#[cfg(feature = "nn")]
pub use rope::{rope, rope_bound};
#[cfg(feature = "dense")]
pub use rot::{rot, rot_bound};
#[cfg(feature = "primitives")]
pub use rotate::rotate;
#[cfg(feature = "dense")]
pub use rotg::{rotg, rotg_bound};
pub use rotmg::{rotmg, rotmg_bound};
#[cfg(feature = "primitives")]
pub use run_length::run_length;
#[cfg(feature = "nn")]
pub use sample_logits::sample_logits;
pub use scal::{scal, scal_bound};
#[cfg(feature = "primitives")]
pub use scan::{scan, scan_bound, scan_with};
#[cfg(feature = "primitives")]
pub use scan_by_key::{scan_by_key, scan_by_key_bound};
#[cfg(feature = "primitives")]
pub use scan_offsets::{scan_offsets, scan_offsets_bound};
#[cfg(feature = "primitives")]
pub use scatter::{scatter, scatter_bound};
#[cfg(feature = "primitives")]
pub use segmented_reduce::{segmented_reduce, segmented_reduce_bound};
#[cfg(feature = "primitives")]
pub use segmented_scan::{segmented_scan, segmented_scan_bound};
#[cfg(feature = "primitives")]
pub use segmented_sort::segmented_sort_positions;
#[cfg(feature = "primitives")]
pub use select::select;
#[cfg(feature = "primitives")]
pub use set_difference::{set_difference, set_difference_positions};
#[cfg(feature = "primitives")]
pub use set_intersection::{set_intersection, set_intersection_positions};
#[cfg(feature = "primitives")]
pub use set_union::{set_union, set_union_positions};
#[cfg(feature = "nn")]
pub use sgd::{sgd, sgd_bound};
#[cfg(feature = "primitives")]
pub use shuffle::shuffle;
#[cfg(feature = "image")]
pub use sobel::{sobel, sobel_bound};
#[cfg(feature = "nn")]
pub use softmax::{softmax, softmax_bound};
#[cfg(feature = "nn")]
pub use softmax_backward::{softmax_backward, softmax_backward_bound};
#[cfg(feature = "primitives")]
pub use sort::sort_positions;
#[cfg(feature = "sparse")]
pub use spconvert::spconvert;
#[cfg(feature = "sparse")]
pub use spinsert::spinsert;
#[cfg(feature = "primitives")]
pub use split_parts::split_parts;
#[cfg(feature = "sparse")]
pub use spmm::{spmm, spmm_bound};
#[cfg(feature = "sparse")]
pub use spmv::{spmv, spmv_bound};
#[cfg(feature = "nn")]
pub use squared_error::{squared_error, squared_error_bound};
#[cfg(feature = "dense")]
pub use strided_copy::strided_copy;
#[cfg(feature = "dense")]
pub use swap::swap;
#[cfg(feature = "dense")]
pub use symm::{symm, symm_bound};
#[cfg(feature = "dense")]
pub use symv::{symv, symv_bound};
#[cfg(feature = "dense")]
pub use syr::{syr, syr_bound};
#[cfg(feature = "dense")]
pub use syr2::{syr2, syr2_bound};
#[cfg(feature = "dense")]
pub use syr2k::{syr2k, syr2k_bound};
#[cfg(feature = "dense")]
pub use syrk::{syrk, syrk_bound};
#[cfg(feature = "primitives")]
pub use top_k::top_k;
#[cfg(feature = "primitives")]
pub use top_k_rows::{top_k_rows, top_k_segments};
pub use transform::{transform, transform_bound};
#[cfg(feature = "dense")]
pub use transpose::transpose;
#[cfg(feature = "dense")]
pub use trmm::{trmm, trmm_bound};
#[cfg(feature = "dense")]
pub use trmv::{trmv, trmv_bound};
#[cfg(feature = "dense")]
pub use trsm::{trsm, trsm_bound};
#[cfg(feature = "dense")]
pub use trsv::{trsv, trsv_bound};
#[cfg(feature = "primitives")]
pub use unique::unique;
#[cfg(feature = "primitives")]
pub use unique_by_key::unique_by_key;
#[cfg(feature = "primitives")]
pub use upper_bound::upper_bound;
#[cfg(feature = "primitives")]
pub use weighted_histogram::{weighted_histogram, weighted_histogram_bound};
pub use zip::{zip, zip_bound};

/// Compares `gradient` with finite differences of `loss` at `x`.
#[cfg(test)]
#[track_caller]
fn assert_slopes(x: &[f32], gradient: &[f32], loss: impl Fn(&[f32]) -> f64) {
    for (i, wanted) in gradient.iter().enumerate() {
        let (mut up, mut down) = (x.to_vec(), x.to_vec());
        up[i] += 1e-2;
        down[i] -= 1e-2;
        let slope = (loss(&up) - loss(&down)) / f64::from(up[i] - down[i]);
        assert!(
            (slope - f64::from(*wanted)).abs() < 1e-3,
            "element {i}: finite difference {slope}, gradient {wanted}"
        );
    }
}
