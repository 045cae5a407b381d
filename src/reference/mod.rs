//! Sequential twins of the ops, short enough to be checked by eye: floats are computed in `f64` and
//! rounded once at the end, integers exactly and wrapped at the end. What tests hold every variant
//! against, with the error that arithmetic in f32 may bring.

mod activation;
mod activation_backward;
mod adam;
mod attention;
mod axpy;
mod batch_norm;
mod bias_backward;
mod blur;
mod cast;
mod conjugate_gradient;
mod conv;
mod conv_backward_data;
mod conv_backward_weights;
mod conv_transpose;
mod cross_entropy;
mod dequantize;
mod equalize;
mod filter1d;
mod filter2d;
mod filter3d;

mod gather_rows;
mod gaussian;
mod gemm;
mod gemm_batched;
mod gemm_int8;
mod gemv;
mod grey;
mod histogram;
mod judge;
mod kv_append;
mod layer_norm;
mod layer_norm_backward;
mod log_softmax;
mod log_softmax_backward;
mod map;
mod mean_pool;
mod median;
mod number;
mod partition;
mod pool;
mod pool_backward;
mod power;
mod quantize;
mod reduce;
mod reduce_by_key;
mod rms_norm;
mod rms_norm_backward;
mod rope;
mod run_length;
mod scan;
mod segmented_reduce;
mod segmented_scan;
mod select;
mod sgd;
mod sobel;
mod softmax;
mod softmax_backward;
mod sort;
mod spconvert;
mod spmm;
mod spmv;
mod squared_error;
mod top_k;
mod transpose;
mod unique;
mod zip;

pub use crate::element::{fp8_code, fp8_value};
pub use activation::activate;
pub use activation_backward::{activation_backward, activation_backward_bound};
pub use adam::{adam, adam_bound};
pub use attention::{AttentionInputs, attention, attention_bound};
pub use axpy::{axpy, axpy_bound};
pub use batch_norm::{batch_norm, batch_norm_bound};
pub use bias_backward::{bias_backward, bias_backward_bound};
pub use blur::{blur, blur_bound};
pub use cast::cast;
pub use conjugate_gradient::conjugate_gradient;
pub use conv::{conv, conv_bound};
pub use conv_backward_data::{conv_backward_data, conv_backward_data_bound};
pub use conv_backward_weights::{
    conv_backward_bias, conv_backward_bias_bound, conv_backward_weights, conv_backward_weights_bound,
};
pub use conv_transpose::{conv_transpose, conv_transpose_bound};
pub use cross_entropy::{cross_entropy, cross_entropy_bound};
pub use dequantize::{code_value, dequantize, dequantize_bound};
pub use equalize::{equalize, equalize_bound};
pub use filter1d::{filter1d, filter1d_bound};
pub use filter2d::{filter2d, filter2d_bound};
pub use filter3d::{filter3d, filter3d_bound};
pub use gather_rows::gather_rows;
pub use gaussian::{gaussian, gaussian_bound};
pub use gemm::{gemm, gemm_bound};
pub use gemm_batched::{gemm_batched, gemm_batched_bound};
pub use gemm_int8::{gemm_int8, gemm_int8_bound, gemm_int8_scaled};
pub use gemv::{gemv, gemv_bound};
pub use grey::{grey, grey_bound};
pub use histogram::histogram;
pub use judge::{Wanted, wanted};
pub use kv_append::kv_append;
pub use layer_norm::{layer_norm, layer_norm_bound};
pub use layer_norm_backward::{layer_norm_backward, layer_norm_backward_bound};
pub use log_softmax::{log_softmax, log_softmax_bound};
pub use log_softmax_backward::{log_softmax_backward, log_softmax_backward_bound};
pub use map::{map, map_bound};
pub use mean_pool::{mean_pool, mean_pool_bound};
pub use median::median;
pub use number::Number;
pub use partition::partition;
pub use pool::{pool, pool_bound};
pub use pool_backward::{pool_backward, pool_backward_bound};
pub use power::{page_rank, power_iteration};
pub use quantize::{code, quantize, quantize_by};
pub use reduce::{reduce, reduce_bound, reduce_with};
pub use reduce_by_key::{reduce_by_key, reduce_by_key_bound};
pub use rms_norm::{rms_norm, rms_norm_bound};
pub use rms_norm_backward::{rms_norm_backward, rms_norm_backward_bound};
pub use rope::{rope, rope_bound};
pub use run_length::run_length;
pub use scan::{scan, scan_bound, scan_with};
pub use segmented_reduce::{segmented_reduce, segmented_reduce_bound};
pub use segmented_scan::{segmented_scan, segmented_scan_bound};
pub use select::select;
pub use sgd::{sgd, sgd_bound};
pub use sobel::{sobel, sobel_bound};
pub use softmax::{softmax, softmax_bound};
pub use softmax_backward::{softmax_backward, softmax_backward_bound};
pub use sort::sort_positions;
pub use spconvert::spconvert;
pub use spmm::{spmm, spmm_bound};
pub use spmv::{spmv, spmv_bound};
pub use squared_error::{squared_error, squared_error_bound};
pub use top_k::top_k;
pub use transpose::transpose;
pub use unique::unique;
pub use zip::{zip, zip_bound};

/// Asserts that `gradient` is that of `loss` at `x`, by finite differences.
#[cfg(test)]
#[track_caller]
fn assert_slopes(x: &[f32], gradient: &[f32], loss: impl Fn(&[f32]) -> f64) {
    for (i, wanted) in gradient.iter().enumerate() {
        let (mut up, mut down) = (x.to_vec(), x.to_vec());
        up[i] += 1e-2;
        down[i] -= 1e-2;
        let slope = (loss(&up) - loss(&down)) / f64::from(up[i] - down[i]);
        assert!((slope - f64::from(*wanted)).abs() < 1e-3, "{i}: {slope} by differences, {wanted}");
    }
}
