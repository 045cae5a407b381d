//! Dense matrices with strides, and the matrix types of other crates.
//!
//! | feature | crate | dense, up and back | sparse, both ways |
//! |---|---|---|---|
//! | `ndarray` | ndarray 0.17 | `ArrayBase` of 1 or 2 axes, views included; any number of axes as a plain buffer | |
//! | `faer` | faer 0.24 | `Mat`, `MatRef` | |
//! | `nalgebra` | nalgebra 0.35 | `Matrix` of any storage, views included | |
//! | `nalgebra-sparse` | nalgebra-sparse 0.12 | | `CsrMatrix`, `CscMatrix`, `CooMatrix` |
//! | `sprs` | sprs 0.11 | | `CsMat` of either storage, views included, `TriMat` |
//!
//! None is on by default; the feature `interop` turns all of them on.
//!
//! # Dense matrices
//!
//! [`Gpu::upload_dense`] takes any [`HostDense`] and returns a [`DenseMatrix`]: a buffer with rows, columns, an
//! [`Order`] and a leading dimension. A column-major matrix is uploaded as it is and multiplied as a transpose.
//! [`DenseMatrix::read_as`] returns any [`FromDense`]. A `Vec` is one, in row-major order.
//!
//! ```
//! # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
//! use tilework::Gpu;
//! use tilework::interop::HostView;
//!
//! let gpu = Gpu::new()?;
//! let values = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
//! let a = HostView::row_major(&values, 2, 3)?; // 1 2 3; 4 5 6
//! let b = HostView::column_major(&values, 3, 2)?; // 1 4; 2 5; 3 6
//! let c = gpu.matmul(&gpu.upload_dense(&a)?, &gpu.upload_dense(&b)?)?;
//! assert_eq!(c.read_as::<Vec<f32>>()?, [14.0, 32.0, 32.0, 77.0]);
//! # Ok::<(), tilework::Error>(())
//! ```
//!
//! # Copies
//!
//! An upload copies the values once, into memory that the device reads. How much of that is one long copy depends
//! on how the matrix lies in memory; [`DenseMatrix::copied`] and a log line of level debug say which case it was:
//!
//! - [`Copied::Whole`]: one slice holds the matrix. A [`HostView`] may have gaps between its rows, which become the
//!   leading dimension.
//! - [`Copied::Lines`]: a part of a larger matrix. Each row (or column) is one copy. The gaps between the rows are
//!   not uploaded, because in a view of another crate they may be borrowed elsewhere or not initialised.
//! - [`Copied::Elements`]: neither rows nor columns are contiguous, as with a step or a reversed axis in both. Each
//!   element is copied by itself, which is several times slower.
//!
//! # Sparse matrices
//!
//! [`Csr`](crate::sparse::Csr), [`Csc`](crate::sparse::Csc) and [`Coo`](crate::sparse::Coo) convert by `try_from`, in
//! both directions. Indices become `u32`, and an index that does not fit is an error. Both crates require that the
//! indices of a row rise. Ours need not, so they are sorted on the way there. A position that occurs twice in
//! compressed rows or columns is an error there; [`Csr::from_triplets`](crate::sparse::Csr::from_triplets) adds such
//! entries up.

mod host;
mod matrix;
mod pack;
mod product;
#[cfg(any(feature = "nalgebra-sparse", feature = "sprs"))]
mod sorted;

#[cfg(feature = "faer")]
pub mod faer;
#[cfg(feature = "nalgebra")]
pub mod nalgebra;
#[cfg(feature = "nalgebra-sparse")]
pub mod nalgebra_sparse;
#[cfg(feature = "ndarray")]
pub mod ndarray;
#[cfg(feature = "sprs")]
pub mod sprs;

pub use host::{HostDense, HostView, Order, Stored};
pub use matrix::{Copied, DenseMatrix, FromDense};

#[cfg(doc)]
use crate::gpu::Gpu;
