//! Code shared by the examples. Each uses a part.

#![allow(dead_code, unused_imports, reason = "each example uses a part")]

mod args;
pub(crate) mod asked;
pub(crate) mod chunks;
mod failure;
mod grid;
pub(crate) mod image_file;
pub(crate) mod levels;
pub(crate) mod matrices;
mod matrix_file;
pub(crate) mod measured;
pub(crate) mod network;
pub(crate) mod npy;
pub(crate) mod pictures;
mod progress;
mod random;

pub(crate) use args::Args;
pub(crate) use failure::{
    Failure, adapter, answer, exit_code, main, open_file, open_gpu, open_gpu_with, profile_of, refuse, room_for, say,
};
pub(crate) use grid::workgroups;
pub(crate) use progress::bar;
pub(crate) use random::Random;
