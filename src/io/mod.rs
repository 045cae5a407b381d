//! Files of the field: parsers and writers, no device.
//!
//! [`matrix_market`] reads and writes sparse and dense matrices as text, also compressed.

pub mod matrix_market;
