//! Matrices from real problems, and malformed files, in the folder that TILEWORK_SPARSE names; .ci/oracles fetches
//! them.

use super::conjugate_gradient::residual;
use super::spmv::check;
use crate::support::{devices, gpu};
use std::path::PathBuf;
use tilework::io::matrix_market::{self, Matrix};
use tilework::reference;
use tilework::sparse::{ConjugateGradient, Csr, Duplicates, Outcome, PageRank, Preconditioner};

fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("TILEWORK_SPARSE").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("skipped: set TILEWORK_SPARSE to the folder of the matrices (.ci/oracles fetches them)");
    }
    folder
}

fn matrix(name: &str) -> Option<Csr> {
    let path = folder()?.join(format!("{name}.mtx"));
    let Matrix::Sparse(triplets) = matrix_market::read_file(path).unwrap() else { panic!("{name} is dense") };
    Some(Csr::from_triplets(&triplets, Duplicates::Sum).unwrap())
}

#[test]
fn rejects_malformed_files_with_line_and_reason() {
    let Some(folder) = folder() else { return };
    let files = [
        ("mangle1", "line 1: `%%MatrixMarket junk coordinate real general` is not"),
        ("mangle2", "line 1: the format `junk`"),
        ("mangle3", "line 1: values of `junk`"),
        ("mangle4", "line 1: the symmetry `junk`"),
        ("bad_dimensions", "line 4: the file ends before the size line"),
        ("bad_header", "line 1: the symmetry `bogus`"),
        ("bad_matrix_type", "line 1: complex values"),
    ];
    for (name, reason) in files {
        let e = matrix_market::read_file(folder.join(format!("malformed/{name}.mtx"))).unwrap_err().to_string();
        assert!(e.contains(name) && e.contains(reason), "{e}");
    }
    assert_eq!(std::fs::read_dir(folder.join("malformed")).unwrap().count(), files.len());
}

#[test]
fn products_match_reference_in_every_format_and_variant() {
    // Name, rows, columns, and entries of both triangles.
    let known = [
        ("bcspwr01", 39, 39, 131),
        ("bcspwr10", 5300, 5300, 21_842),
        ("west0479", 479, 479, 1910),
        ("mbeacxc", 492, 490, 49_920),
        ("Franz6", 10_592, 3016, 48_472),
        ("4elt", 15_606, 15_606, 91_756),
        ("bcsstk16", 4884, 4884, 290_378),
        ("arrow", 46_500, 46_500, 139_498),
        ("copter2", 55_476, 55_476, 704_476),
        ("mdual", 258_569, 258_569, 1_026_264),
    ];
    for (name, rows, cols, entries) in known {
        let Some(csr) = matrix(name) else { return };
        assert_eq!((csr.rows, csr.cols, csr.entries()), (rows, cols, entries), "{name}");
        for device in devices().iter().filter(|device| device.main) {
            check(device, &csr, 1.0, 0.0);
        }
    }
}

#[test]
fn conjugate_gradients_solve_a_stiff_structure() {
    let (Some(gpu), Some(csr)) = (gpu(), matrix("bcsstk16")) else { return };
    let ones = vec![1.0; csr.rows];
    let b: Vec<f32> = reference::spmv(1.0, &csr, &ones, 0.0, &ones).unwrap().iter().map(|b| *b as f32).collect();
    let a = gpu.upload_matrix(&csr).unwrap();
    let (right, x) = (gpu.upload(&b).unwrap(), gpu.alloc_zeroed::<f32>(csr.rows).unwrap());
    let cg = ConjugateGradient::new(a.layout()).preconditioner(Preconditioner::Jacobi);
    let solution = gpu.conjugate_gradient(&cg).unwrap().solve(&a, &right, &x, |_, _| ()).unwrap();
    let (_, wanted) = reference::conjugate_gradient(&csr, &b, &vec![0.0; csr.rows], true, 1e-5, 1000).unwrap();
    assert_eq!(solution.outcome, Outcome::Converged, "{solution}");
    assert!(solution.iterations.abs_diff(wanted.len() - 1) <= wanted.len() / 10, "{solution} {}", wanted.len());
    let x = x.read().unwrap();
    let farthest = x.iter().map(|x| (x - 1.0).abs()).fold(0.0, f32::max);
    assert!(residual(&csr, &x, &b) < 1.01e-5 && farthest < 5e-3, "{solution}: {farthest}");
}

#[test]
fn ranks_of_a_mesh_match_reference() {
    let (Some(gpu), Some(csr)) = (gpu(), matrix("4elt")) else { return };
    let t = csr.transitions().unwrap();
    let want = reference::page_rank(&t, 0.85, None, 100).unwrap();
    let a = gpu.upload_matrix(&t).unwrap();
    let x = gpu.alloc::<f32>(t.rows).unwrap();
    let rank = PageRank::new(a.layout());
    let solution = gpu.page_rank(&rank).unwrap().run(&a, None, &x, |_, _| ()).unwrap();
    assert_eq!(solution.outcome, Outcome::Converged, "{solution}");
    let apart: f64 = x.read().unwrap().iter().zip(&want).map(|(&x, want)| (f64::from(x) - want).abs()).sum();
    assert!(apart < 0.85 / 0.15 * 1e-6 + 2e-6, "{solution}: {apart}");
}
