//! Bytes as an IDX file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tilework::io::idx;

fuzz_target!(|data: &[u8]| {
    if let Ok(array) = idx::read(data) {
        assert_eq!(array.shape.iter().product::<usize>(), array.data.len());
    }
});
