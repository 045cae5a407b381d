//! Bytes as a Matrix Market file; a valid one is written, read again, and converted to every sparse format.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tilework::io::matrix_market::{self, Matrix};
use tilework::sparse::{Csr, Duplicates};

fuzz_target!(|data: &[u8]| {
    let Ok(matrix) = matrix_market::read(data) else { return };
    let mut text = Vec::new();
    matrix_market::write(&mut text, &matrix).expect("what was read can be written");
    let again = matrix_market::read(text.as_slice()).expect("what was written can be read");
    let bits = |m: &Matrix| match m {
        Matrix::Sparse(m) => m.values.iter().map(|v| v.to_bits()).collect::<Vec<_>>(),
        Matrix::Dense(m) => m.values.iter().map(|v| v.to_bits()).collect(),
    };
    // All NaNs are one word in the file.
    if !bits(&matrix).iter().any(|b| f32::from_bits(*b).is_nan()) {
        assert_eq!(bits(&matrix), bits(&again));
    }
    let Matrix::Sparse(coo) = matrix else { return };
    coo.validate().expect("indices are within the matrix");
    // A file of a few bytes can declare a large matrix.
    if coo.rows.max(coo.cols) > 1 << 12 {
        return;
    }
    for duplicates in [Duplicates::Sum, Duplicates::Refuse] {
        let Ok(csr) = Csr::from_triplets(&coo, duplicates) else { continue };
        csr.validate().expect("a sound matrix");
        let _ = csr.analyse();
        assert_eq!(csr.to_csc().expect("a sound matrix").to_csr().expect("a sound matrix").entries(), csr.entries());
        assert_eq!(csr.to_jds().expect("a sound matrix").to_csr().expect("a sound matrix").entries(), csr.entries());
        if let Ok(sell) = csr.to_sell(4, 16) {
            assert_eq!(sell.to_csr().expect("a sound matrix").entries(), csr.entries());
        }
        let _ = csr.transitions();
    }
});
