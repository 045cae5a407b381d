//! Attention, and the key-value cache that grows while decoding.
//!
//! | want | take |
//! |---|---|
//! | softmax(Q K^T) V of each head: causal, windowed, masked, over a paged or quantised cache | [`Attention`] |
//! | its gradients with respect to Q, K and V | [`AttentionBackward`] |
//! | append the keys and values of new tokens to the cache | [`KvAppend`] |
//! | give the pages of a cache to sequences that grow, fork and end | [`PagePool`] |
//!
//! With grouped queries `heads / kv_heads` consecutive heads share one kv head.

#[expect(clippy::module_inception, reason = "the family is named after its op")]
mod attention;
mod attention_backward;
mod backward_coop;
mod backward_flash;
mod backward_layout;
mod backward_padding;
mod backward_statistics;
mod backward_stored;
mod by_name;
mod coop;
mod flash;
mod kv_append;
mod kv_storage;
mod layout;
mod naive;
mod page_pool;
mod score_stage;
mod split;
mod way;

pub use attention::Attention;
pub use attention_backward::AttentionBackward;
pub(crate) use attention_backward::may_differentiate_on_matrices;
pub use coop::CoopTile;
pub use flash::FlashTile;
pub use kv_append::KvAppend;
pub use kv_storage::{KvType, Paging};
pub use page_pool::{PageMoves, PagePool, SequenceId};
pub use score_stage::ScoreStage;
pub(crate) use way::may_run_on_matrices;

use crate::program::Operation;

/// The ops of this family.
pub const OPS: &[Operation] = &[attention::INFO, attention_backward::INFO, kv_append::INFO];
