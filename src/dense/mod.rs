//! Dense.
