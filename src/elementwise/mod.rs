//! Elementwise.
