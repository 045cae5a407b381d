//! Images of `u8`, `f16` and `f32`, with 1 to 4 interleaved or planar channels: [`Image`].
//!
//! | to compute | use |
//! |---|---|
//! | the brightness of RGB pixels | [`Grey`] |
//! | the mean of each neighbourhood | [`Blur`] |
//! | the Gaussian-weighted mean of each neighbourhood | [`Gaussian`] |
//! | the median of each neighbourhood, which removes outliers and keeps edges | [`Median`] |
//! | edges | [`Sobel`] |
//! | values spread over their whole range | [`Equalize`] |
//! | any other filter | [`Filter2d`](crate::Filter2d), which takes `u8` too |
//!
//! [`Gaussian`], [`Median`] and [`Sobel`] repeat the nearest pixel outside the image; [`Blur`] leaves out pixels
//! outside.

mod blur;
mod equalize;
mod gaussian;
mod grey;
mod layout;
mod median;
mod sobel;

pub use blur::{Blur, Divide};
pub(crate) use equalize::BINS as EQUALIZE_BINS;
pub use equalize::Equalize;
pub use gaussian::Gaussian;
pub use grey::{Grey, GreyWeights};
pub use layout::{Image, Layout};
pub use median::Median;
pub use sobel::{Gradient, Sobel};

use crate::program::Operation;

/// The ops of this family.
pub const OPS: &[Operation] = &[grey::INFO, blur::INFO, gaussian::INFO, median::INFO, sobel::INFO, equalize::INFO];
