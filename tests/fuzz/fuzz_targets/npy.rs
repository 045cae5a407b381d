//! Bytes as a NumPy file, by the reader of the example `op`; a valid one is written and read again.

#![no_main]
#![allow(dead_code, unused_imports, reason = "the modules of the example do more than read")]

mod common;
mod file;

use common::npy;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let path = file::holding(data);
    if let Ok(array) = npy::read(path) {
        let (shape, len) = (array.shape().to_vec(), array.len());
        assert_eq!(shape.iter().product::<usize>(), len);
        npy::write_all([(&path.to_path_buf(), array)]).expect("what was read can be written");
        let again = npy::read(path).expect("what was written can be read");
        assert_eq!((again.shape(), again.len()), (&shape[..], len));
    }
});
