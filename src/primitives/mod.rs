//! Primitives.
