//! Attention, and the cache of keys and values that decoding grows.
//!
//! | want | take |
//! |---|---|
//! | softmax(Q K^T) V over heads: whole, causal, windowed, masked, over a cache in pages or quantised | [`Attention`] |
//! | the keys and values of new tokens in such a cache | [`KvAppend`] |
//!
//! A head of a query sees the keys of its group: `heads` must be a multiple of `kv_heads`.

#[expect(clippy::module_inception, reason = "the family is named after its op")]
mod attention;
mod coop;
mod flash;
mod form;
mod kv_append;
mod layout;
mod naive;
mod split;

pub use attention::{Attention, KvType, Paging};
pub use coop::CoopTile;
pub use flash::FlashTile;
pub use kv_append::KvAppend;

use crate::program::Operation;

/// The ops of this family.
pub const OPS: &[Operation] = &[attention::INFO, kv_append::INFO];
