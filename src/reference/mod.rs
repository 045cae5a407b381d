//! Sequential references of the ops, short enough to check by eye. Floats are computed in `f64` and rounded once at the
//! end; integers are exact and wrap at the end. Tests compare every variant with them; functions `NAME_bound` bound the
//! error of f32 arithmetic.
//!
//! # Errors
//! A reference that returns a [`Result`](crate::Result) fails with [`Shape`](crate::ErrorKind::Shape) if the lengths of
//! operands do not fit the op or each other, and as the op does for options that it does not define. Pages of single
//! functions list only other errors. `NAME_bound` fails as `NAME`.

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
mod prelude;
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
#[cfg(feature = "dense")]
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
#[cfg(feature = "sparse")]
pub use conjugate_gradient::conjugate_gradient;
pub use judge::{Wanted, wanted};
pub use number::Number;
#[cfg(feature = "sparse")]
pub use power::{page_rank, power_iteration};

/// Lists the references by file, each with the feature of its family: their names are public here, and their judges
/// are found by the name of the op.
macro_rules! references {
    ($($file:ident)*; $($feature:tt: $($of_family:ident)*;)*) => {
        $(pub use $file::*;)*
        $($(
            #[cfg(feature = $feature)]
            #[allow(unused_imports, unreachable_pub, reason = "some have nothing but a judge")]
            pub use $of_family::*;
        )*)*

        const JUDGES: &[(&str, judge::Judge)] = &[
            $((stringify!($file), $file::judge),)*
            $($(
                #[cfg(feature = $feature)]
                (stringify!($of_family), $of_family::judge),
            )*)*
        ];
    };
}
#[rustfmt::skip]
references! {
    axpy scal map zip transform;
    "primitives":
        reduce scan segmented_scan scan_by_key histogram histogram_2d histogram_channels weighted_histogram sort argsort segmented_sort select partition unique run_length
        reduce_by_key segmented_reduce top_k top_k_rows frontier
        nth_element quantile shuffle categorical split_parts select_columns scan_offsets reduce_offsets quadtree adaptive_grid random
        gather scatter lower_bound upper_bound dot nrm2 asum iamax iamin
        adjacent_difference reverse rotate
        merge set_union set_intersection set_difference unique_by_key is_sorted find merge_sort;
    "dense":
        gemm gemm_batched gemm_grouped gemv transpose permute_axes strided_copy pad_axes concatenate ger symv trmv trsv gbmv syr syr2 trsm trmm syrk syr2k symm rot rotg rotmg swap caxpy cdot cgemv cgemm;
    "sparse":
        spmv spmm spconvert spinsert;
    "conv":
        filter1d filter2d filter3d conv conv_transpose conv_backward_data
        conv_backward_weights;
    "quantize":
        cast quantize dequantize gemm_int8;
    "image":
        grey blur gaussian median sobel equalize;
    "nn":
        softmax log_softmax layer_norm rms_norm rope pool pool_backward pool_backward_weights batch_norm
        mean_pool cross_entropy squared_error activation_backward
        bias_backward binary_cross_entropy softmax_backward log_softmax_backward layer_norm_backward
        rms_norm_backward batch_norm_train batch_norm_backward sgd adam dropout sample_logits;
    "attention":
        attention attention_backward kv_append;
}

/// Compares `gradient` with finite differences of `loss` at `x`.
#[cfg(test)]
#[track_caller]
fn assert_slopes(x: &[f32], gradient: &[f32], loss: impl Fn(&[f32]) -> f64) {
    for (i, wanted) in gradient.iter().enumerate() {
        let (mut up, mut down) = (x.to_vec(), x.to_vec());
        up[i] += 1e-2;
        down[i] -= 1e-2;
        let slope = (loss(&up) - loss(&down)) / f64::from(up[i] - down[i]);
        assert!((slope - f64::from(*wanted)).abs() < 1e-3, "element {i}: finite difference {slope}, gradient {wanted}");
    }
}
