//! Images of `u8` and `f32`, of 1 to 4 channels side by side or in planes: [`Image`].
//!
//! | want | take |
//! |---|---|
//! | the brightness of RGB pixels | [`Grey`] |
//! | the mean of each pixel's surroundings | [`Blur`] |
//! | the same, weighted by a bell curve | [`Gaussian`] |
//! | single wrong pixels removed, edges kept | [`Median`] |
//! | edges | [`Sobel`] |
//! | values spread over their whole range | [`Equalize`] |
//! | any other filter | [`Filter2d`](crate::Filter2d), which takes `u8` too |
//!
//! Outside of an image lies the nearest pixel ([`Gaussian`], [`Median`], [`Sobel`]), or what is there does not count ([`Blur`]).

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
pub const OPS: &[Operation] =
    &[grey::INFO, blur::INFO, gaussian::INFO, median::INFO, sobel::INFO, equalize::INFO];
