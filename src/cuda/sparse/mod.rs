pub(crate) mod cg_stream;
