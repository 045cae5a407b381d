//! Sequential references of the ops, short enough to check by eye. Floats are computed in `f64` and rounded once at the
//! end; integers are exact and wrap at the end. Tests compare every variant with them; functions `NAME_bound` bound the
//! error of f32 arithmetic.
//!
//! # Errors
//! A reference that returns a [`Result`](crate::Result) fails with [`Shape`](crate::ErrorKind::Shape) if the lengths of
//! operands do not fit the op or each other, and as the op does for options that it does not define. Pages of single
//! functions list only other errors. `NAME_bound` fails as `NAME`.

#[cfg(feature = "attention")]
mod attention;
#[cfg(feature = "attention")]
mod attention_backward;
#[cfg(feature = "dense")]
mod axes;
#[cfg(feature = "nn")]
mod batch_norm;
#[cfg(feature = "conv")]
mod conv;
#[cfg(feature = "conv")]
mod filters;
#[cfg(feature = "dense")]
mod gemm;
#[cfg(feature = "primitives")]
mod histogram;
#[cfg(feature = "image")]
mod image;
mod judge;
#[cfg(feature = "nn")]
mod layer_norm;
#[cfg(feature = "nn")]
mod layers;
#[cfg(feature = "nn")]
mod losses;
mod maps;
#[cfg(feature = "dense")]
mod matrix_matrix;
#[cfg(feature = "dense")]
mod matrix_vector;
#[cfg(feature = "primitives")]
mod moves;
#[cfg(feature = "primitives")]
mod norms;
mod number;
#[cfg(feature = "nn")]
mod optimizers;
#[cfg(feature = "nn")]
mod pool;
mod prelude;
#[cfg(feature = "quantize")]
mod quantize;
#[cfg(feature = "primitives")]
mod random;
#[cfg(feature = "primitives")]
mod reduce;
#[cfg(feature = "primitives")]
mod scan;
#[cfg(feature = "primitives")]
mod select;
#[cfg(feature = "primitives")]
mod sets;
#[cfg(feature = "nn")]
mod softmax;
#[cfg(feature = "primitives")]
mod sort;
#[cfg(feature = "sparse")]
mod sparse;
#[cfg(feature = "primitives")]
mod states;
mod transform;
#[cfg(feature = "primitives")]
mod trees;
#[cfg(feature = "dense")]
mod vectors;

pub use crate::element::{fp8_code, fp8_value};
pub use judge::{Wanted, wanted};
pub use number::Number;

/// Lists the references by file, each with the feature of its family: their names are public here, and their judges
/// are found by the name of the op.
macro_rules! references {
    ($($file:ident)*; $($feature:tt: $($of_family:ident)*;)*) => {
        $(pub use $file::*;)*
        $($(
            #[cfg(feature = $feature)]
            pub use $of_family::*;
        )*)*

        const JUDGES: &[judge::Judges] = &[
            $($file::JUDGES,)*
            $($(
                #[cfg(feature = $feature)]
                $of_family::JUDGES,
            )*)*
        ];
    };
}
references! {
    maps transform;
    "primitives": histogram moves norms random reduce scan select sets sort trees;
    "dense": axes gemm matrix_matrix matrix_vector vectors;
    "sparse": sparse;
    "conv": conv filters;
    "quantize": quantize;
    "image": image;
    "nn": batch_norm layer_norm layers losses optimizers pool softmax;
    "attention": attention attention_backward;
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
