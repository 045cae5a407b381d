//! Insertion into coordinates and into free slots, in f32 and f16, against the reference.

use super::spconvert::assert_same;
use super::spmv::{halved, ragged, refused, shuffled, uniform};
use crate::support::devices;
use tilework::prelude::*;
use tilework::program::{DeviceProfile, Op};
use tilework::reference::spinsert;
use tilework::sparse::{Coo, Csr, Format, HostMatrix, MatrixLayout, SparseMatrix, Target};
use tilework::{DType, ErrorKind, Result};

/// The first `n` of some entries of a matrix, in any order, with values that f16 holds.
fn entries(rows: usize, cols: usize, n: usize) -> Coo {
    let all = shuffled(&halved(uniform(rows, cols, n.div_ceil(rows))).to_coo().unwrap());
    let first = |list: &[u32]| list[..n].to_vec();
    Coo { row_idxs: first(&all.row_idxs), col_idxs: first(&all.col_idxs), values: all.values[..n].into(), ..all }
}

/// Uploads with values of f32, or of f16.
fn upload(gpu: &Gpu, matrix: &impl SparseMatrix, halves: bool) -> Result<DeviceMatrix> {
    if halves { gpu.upload_matrix_f16(matrix) } else { gpu.upload_matrix(matrix) }
}

#[test]
fn new_entries_are_appended_to_coo() {
    for (device, halves) in devices().iter().flat_map(|d| [(d, false), (d, true)]) {
        let gpu = &device.gpu;
        let what = format!("{} {halves}", device.label);
        let mut want = HostMatrix::Coo(shuffled(&halved(ragged(90, 70, 40)).to_coo().unwrap()));
        let mut a = upload(gpu, &want, halves).unwrap();
        // One by one, and many at once: f16 starts at even and at odd places.
        for n in [1, 0, 5, 1, 600, 1, 1, 1] {
            let new = entries(90, 70, n);
            gpu.insert_entries(&mut a, &upload(gpu, &new, halves).unwrap()).unwrap();
            want = spinsert(&want, &new).unwrap().0;
            let entries = want.layout().unwrap().entries;
            assert!(a.capacity() >= entries && a.layout().entries == entries, "{what}");
            assert_same(&what, &a, &want);
        }
        assert!(a.capacity() > a.layout().entries, "{what}");
        let HostMatrix::Coo(coo) = &want else { panic!() };
        let csr = gpu.convert_matrix(&a, Target::Csr).unwrap();
        assert_same(&what, &csr, &HostMatrix::Csr(Csr::from_coo(coo).unwrap()));
        let x = gpu.upload(&[1.0f32; 70]).unwrap();
        let (y, other) = (gpu.spmv(&a, &x).unwrap(), gpu.spmv(&csr, &x).unwrap());
        for (y, other) in y.read().unwrap().into_iter().zip(other.read().unwrap()) {
            assert!((y - other).abs() < 1e-3, "{what}: {y} {other}");
        }
    }
}

#[test]
fn new_entries_fill_free_slots_of_ell() {
    for (device, halves) in devices().iter().flat_map(|d| [(d, false), (d, true)]) {
        let gpu = &device.gpu;
        let what = format!("{} {halves}", device.label);
        // An odd number of slots.
        let ell = HostMatrix::Ell(halved(ragged(121, 70, 12)).to_hybrid(31).unwrap().ell);
        let mut a = upload(gpu, &ell, halves).unwrap();
        let new = entries(121, 70, 5 * 121);
        gpu.insert_entries(&mut a, &upload(gpu, &new, halves).unwrap()).unwrap();
        let (want, 0) = spinsert(&ell, &new).unwrap() else { panic!("{what}") };
        assert_same(&what, &a, &want);
        // A row with too few free slots: nothing changes.
        let full = Coo { row_idxs: vec![9; 40], col_idxs: vec![1; 40], values: vec![1.0; 40], ..new };
        let (unchanged, missing) = spinsert(&want, &full).unwrap();
        assert!(unchanged == want && missing > 0);
        let e = gpu.insert_entries(&mut a, &upload(gpu, &full, halves).unwrap()).unwrap_err();
        let lacking = format!("lack {missing} slots");
        assert!(e.kind() == ErrorKind::InvalidArgument && e.to_string().contains(&lacking), "{e}");
        assert_same(&what, &a, &want);
    }
}

#[test]
fn rejects_invalid_arguments() {
    let profile = DeviceProfile::webgpu_defaults();
    let lower = |op: &Spinsert| op.lower(&profile).map(drop);
    let format = Format::Coo { sorted: true };
    let coo = MatrixLayout { rows: 10, cols: 10, entries: 20, longest: 9, format, values: DType::F32 };
    refused(lower(&Spinsert::new(coo, 3).variant("csr")), ErrorKind::InvalidArgument, "ell");
    refused(lower(&Spinsert::new(coo, 3).variant("ell")), ErrorKind::InvalidArgument, "another format");
    let csr = MatrixLayout { format: Format::Csr, ..coo };
    refused(lower(&Spinsert::new(csr, 3)), ErrorKind::InvalidArgument, "no room for new entries");
    let bytes = MatrixLayout { values: DType::U8, ..coo };
    refused(lower(&Spinsert::new(bytes, 3)), ErrorKind::InvalidArgument, "values of u8");
    for n in [1 << 30, usize::MAX] {
        refused(lower(&Spinsert::new(coo, n)), ErrorKind::TooLarge, "");
    }
    let empty = MatrixLayout { rows: 0, entries: 0, format: Format::Ell { width: 0 }, ..coo };
    assert!(Spinsert::new(empty, 0).lower(&profile).is_ok());
}
