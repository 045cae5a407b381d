//! Parts of the examples that read files, and their dependencies.

#[path = "../../../examples/common"]
mod parts {
    mod args;
    pub(crate) mod asked;
    mod failure;
    mod matrix_file;
    pub(crate) mod network;
    pub(crate) mod npy;

    pub(crate) use args::Args;
    pub(crate) use failure::{Failure, open_file, refuse, room_for};
}

pub(crate) use parts::*;
