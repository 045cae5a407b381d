//! Every format and variant of `Spmm` against the reference.

use super::spmv::{
    any_columns, arrow, banded, every_format, halved, matrix, names, ragged, refused, run_on_wild_lists, small_layouts,
    uniform,
};
use crate::support::coverage::all;
use crate::support::{Device, Random, assert_close, devices, gpu, numbers};
use tilework::prelude::*;
use tilework::program::{DeviceProfile, Op};
use tilework::reference::{spmm, spmm_bound};
use tilework::sparse::{Csr, Format, MatrixLayout, SparseMatrix};
use tilework::{DType, ErrorKind, Result};

fn run(gpu: &Gpu, a: &DeviceMatrix, op: &Spmm, b: &[f32], c: &[f32]) -> Result<Vec<f32>> {
    let (b, c) = (gpu.upload(b)?, gpu.upload(c)?);
    let mut rec = gpu.recorder();
    op.plan::<f32>(gpu)?.record(&mut rec, a, &b, &c)?;
    rec.submit()?;
    c.read()
}

/// Rows of `ld` elements: those of `list`, then `fill`.
fn spread(list: &[f32], rows: usize, n: usize, ld: usize, fill: f32) -> Vec<f32> {
    let mut out = vec![fill; if rows * n == 0 { 0 } else { (rows - 1) * ld + n }];
    for row in 0..rows {
        for j in 0..n {
            out[row * ld + j] = list[row * n + j];
        }
    }
    out
}

/// The dense operand.
#[derive(Clone, Copy, Debug)]
struct Dense {
    n: usize,
    ldb: usize,
    ldc: usize,
    alpha: f32,
    beta: f32,
    half: bool,
}

impl Dense {
    fn of(n: usize) -> Self {
        Self { n, ldb: n, ldc: n, alpha: 1.0, beta: 0.0, half: false }
    }
}

/// Runs a product on a device in all formats and variants, each modified by `tune`.
fn check_tuned(device: &Device, csr: &Csr, dense: Dense, tune: impl Fn(Spmm) -> Spmm) {
    let Dense { n, ldb, ldc, alpha, beta, half } = dense;
    let mut random = Random::new((csr.entries() + n) as u64);
    let (b, c) = (random.elements::<f32>(csr.cols * n), random.elements::<f32>(csr.rows * n));
    let want = spmm(alpha, csr, &b, n, beta, &c).unwrap();
    let bound = spmm_bound(alpha, csr, &b, n, beta, &c).unwrap();
    let (b, c) = (spread(&b, csr.cols, n, ldb, f32::NAN), spread(&c, csr.rows, n, ldc, 7.5));
    for host in every_format(csr) {
        let gpu = &device.gpu;
        let a = if half { gpu.upload_matrix_f16(&host) } else { gpu.upload_matrix(&host) }.unwrap();
        for variant in names(Spmm::variants(), a.layout().format) {
            let op = Spmm::new(a.layout(), n).alpha(alpha).beta(beta).ldb(ldb).ldc(ldc).variant(variant);
            let what = format!("{}: {variant} {dense:?} {:?}", device.label, a.layout());
            let got = run(&device.gpu, &a, &tune(op), &b, &c).unwrap_or_else(|e| panic!("{what}: {e}"));
            let inside: Vec<f32> = got.chunks(ldc.max(1)).flat_map(|row| row[..n].iter().copied()).collect();
            assert_close(&what, &numbers(&inside), &want, &bound);
            assert!(got.chunks(ldc.max(1)).all(|row| row[n..].iter().all(|&gap| gap == 7.5)), "{what}");
        }
    }
}

fn check(device: &Device, csr: &Csr, dense: Dense) {
    check_tuned(device, csr, dense, |op| op);
}

#[test]
fn every_format_and_variant_matches_reference() {
    for device in devices() {
        check(device, &ragged(300, 200, 150), Dense::of(8));
        check(device, &ragged(300, 200, 150), Dense { alpha: -0.5, beta: 2.0, ..Dense::of(5) });
        if device.main {
            check(device, &uniform(150, 300, 16), Dense { alpha: 0.0, beta: 0.5, ..Dense::of(4) });
            // Several blocks of columns, the last partial; vec4s and single elements.
            check(device, &uniform(90, 60, 10), Dense::of(260));
            check(device, &banded(60, 3), Dense::of(131));
            if all() {
                check(device, &arrow(700), Dense { beta: 1.0, ..Dense::of(32) });
                check(device, &uniform(300, 300, 1), Dense::of(1));
            }
        }
    }
}

#[test]
fn rows_with_gaps_between_match_reference() {
    for device in devices().iter().filter(|device| device.main) {
        let csr = ragged(200, 150, 90);
        // Only the first can be read as vec4s.
        for (ldb, ldc) in [(24, 28), (21, 20), (20, 23)] {
            check(device, &csr, Dense { ldb, ldc, beta: 1.0, ..Dense::of(20) });
        }
    }
}

#[test]
fn f16_values_match_reference() {
    for device in devices() {
        let csr = halved(ragged(201, 150, 90));
        check(device, &csr, Dense { half: true, ..Dense::of(12) });
        check(device, &csr, Dense { half: true, beta: -1.0, ..Dense::of(3) });
    }
}

#[test]
fn small_and_empty_matrices_match_reference() {
    for device in devices().iter().filter(|device| device.main) {
        for (rows, cols) in [(0, 0), (0, 5), (5, 0), (1, 1), (1, 70), (70, 1)] {
            for n in [0, 1, 4] {
                check(device, &uniform(rows, cols, usize::from(cols > 0)), Dense { beta: 0.5, ..Dense::of(n) });
                check(device, &uniform(rows, cols, 0), Dense::of(n));
            }
        }
    }
}

#[test]
fn tiles_of_every_size_match_reference() {
    for device in devices().iter().filter(|device| device.main) {
        let csr = ragged(400, 300, 250);
        // The sizes for cards, and sizes so small that carries have carries.
        for (workgroup_size, lanes, items) in [(256, 8, 64), (32, 4, 7), (4, 1, 2)] {
            check_tuned(device, &csr, Dense::of(12), |op| op.tile(workgroup_size, lanes, items));
        }
    }
}

#[test]
fn rows_longer_than_one_dispatch_match_reference() {
    for device in devices().iter().filter(|device| device.main) {
        let csr = matrix(20, 500, |row, random| any_columns(random, if row == 10 { 70_000 } else { row % 3 }, 500));
        check(device, &csr, Dense::of(2));
    }
}

#[test]
fn nan_propagates_only_from_elements_that_are_read() {
    let Some(gpu) = gpu() else { return };
    let mut csr = banded(40, 1);
    csr.values[10] = f32::NAN;
    let n = 4;
    // A row of B that no entry refers to.
    csr.cols = 41;
    let mut b = vec![1.0; 41 * n];
    b[40 * n..].fill(f32::NAN);
    let want = spmm(1.0, &csr, &b, n, 0.0, &vec![0.0; 40 * n]).unwrap();
    assert_eq!(want.iter().filter(|c| c.is_nan()).count(), n);
    for host in every_format(&csr) {
        let a = gpu.upload_matrix(&host).unwrap();
        for variant in names(Spmm::variants(), a.layout().format) {
            let op = Spmm::new(a.layout(), n).variant(variant);
            let c = run(gpu, &a, &op, &b, &vec![f32::NAN; 40 * n]).unwrap();
            let nan: Vec<bool> = c.iter().map(|c| c.is_nan()).collect();
            assert_eq!(nan, want.iter().map(|c| c.is_nan()).collect::<Vec<_>>(), "{variant}");
        }
    }
}

#[test]
fn results_are_reproducible() {
    let Some(gpu) = gpu() else { return };
    let csr = ragged(300, 200, 150);
    let b = Random::new(1).elements::<f32>(200 * 8);
    for host in every_format(&csr) {
        let a = gpu.upload_matrix(&host).unwrap();
        for variant in names(Spmm::variants(), a.layout().format) {
            let op = Spmm::new(a.layout(), 8).variant(variant);
            let bits = || run(gpu, &a, &op, &b, &[0.0; 2400]).unwrap().into_iter().map(f32::to_bits).collect();
            let first: Vec<u32> = bits();
            assert_eq!(first, bits(), "{variant}");
        }
    }
}

#[test]
fn scalars_on_the_device_match_reference() {
    let csr = ragged(200, 150, 90);
    for device in devices() {
        let gpu = &device.gpu;
        for (n, ldc) in [(8, 8), (5, 9), (1, 1)] {
            let b = Random::new(5).elements::<f32>(150 * n);
            let before = Random::new(6).elements::<f32>(200 * n);
            for host in every_format(&csr) {
                let a = gpu.upload_matrix(&host).unwrap();
                let plan = Spmm::new(a.layout(), n).ldc(ldc).with_scalars().plan::<f32>(gpu).unwrap();
                for [alpha, beta] in [[-0.5, 2.0], [0.0, 1.0], [1.5, 0.0]] {
                    let factor = if alpha == 0.0 { vec![f32::NAN; b.len()] } else { b.clone() };
                    let old = if beta == 0.0 { vec![f32::NAN; before.len()] } else { before.clone() };
                    let want = spmm(alpha, &csr, &factor, n, beta, &old).unwrap();
                    let bound = spmm_bound(alpha, &csr, &factor, n, beta, &old).unwrap();
                    let c = gpu.upload(&spread(&old, 200, n, ldc, 7.5)).unwrap();
                    let (b, scalars) = (gpu.upload(&factor).unwrap(), gpu.upload(&[alpha, beta]).unwrap());
                    let mut rec = gpu.recorder();
                    plan.with_scalars(&scalars).record(&mut rec, &a, &b, &c).unwrap();
                    rec.submit().unwrap();
                    let got = c.read().unwrap();
                    let rows = got.chunks(ldc).flat_map(|row| &row[..n]).copied().collect::<Vec<_>>();
                    let what = format!("{}: {n} {ldc} {alpha} {beta}", device.label);
                    assert_close(&what, &numbers(&rows), &want, &bound);
                    assert!(got.chunks(ldc).flat_map(|row| &row[n..]).all(|&gap| gap == 7.5), "{what}");
                }
            }
        }
    }
}

#[test]
fn unchecked_lists_stay_within_bounds() {
    let Some(gpu) = gpu() else { return };
    for layout in small_layouts() {
        for variant in names(Spmm::variants(), layout.format) {
            let plan = Spmm::new(layout, 4).variant(variant).plan::<f32>(gpu).unwrap();
            run_on_wild_lists(gpu, &plan.into_executable());
        }
    }
}

#[test]
fn carries_between_tiles_fit_one_binding() {
    let profile = DeviceProfile::webgpu_defaults();
    let csr = Format::Csr;
    let (rows, entries) = (1000, 8 << 20);
    let layout = MatrixLayout { rows, cols: 1000, entries, longest: entries, format: csr, values: DType::F32 };
    let program = Spmm::new(layout, 4096).lower(&profile).unwrap();
    assert_eq!(program.variant(), "csr-merge");
    assert!(program.scratch.iter().all(|&bytes| bytes <= profile.limits.max_storage_binding), "{:?}", program.scratch);
}

#[test]
fn rejects_invalid_arguments() {
    let profile = DeviceProfile::webgpu_defaults();
    let lower = |op: &Spmm| op.lower(&profile).map(drop);
    let layout = ragged(100, 100, 10).layout().unwrap();
    let op = Spmm::new(layout, 8);
    refused(lower(&op.clone().variant("dia")), ErrorKind::InvalidArgument, "csr-merge");
    refused(lower(&op.clone().variant("ell")), ErrorKind::InvalidArgument, "takes another format");
    refused(lower(&op.clone().ldb(7)), ErrorKind::Shape, "leading dimension of b is 7");
    refused(lower(&op.clone().ldc(7)), ErrorKind::Shape, "leading dimension of c is 7");
    refused(lower(&Spmm::new(layout, 1 << 20)), ErrorKind::TooLarge, "104857600 f32");
    refused(lower(&op.ldb(usize::MAX)), ErrorKind::TooLarge, "b");
    let no_slices = MatrixLayout { format: Format::Sell { slice: 0, places: 9 }, ..layout };
    refused(lower(&Spmm::new(no_slices, 8)), ErrorKind::InvalidArgument, "slices of 0 rows");
    let Some(gpu) = gpu() else { return };
    let a = gpu.upload_matrix(&banded(10, 1)).unwrap();
    let short = gpu.upload(&[1.0f32; 19]).unwrap();
    refused(gpu.spmm(&a, &short, 2).map(drop), ErrorKind::Shape, "b");
    let b = gpu.upload(&[1.0f32; 20]).unwrap();
    let c = gpu.spmm(&a, &b, 2).unwrap().read().unwrap();
    let want = spmm(1.0, &banded(10, 1), &[1.0; 20], 2, 0.0, &[0.0; 20]).unwrap();
    let bound = spmm_bound(1.0, &banded(10, 1), &[1.0; 20], 2, 0.0, &[0.0; 20]).unwrap();
    assert_close("gpu.spmm", &numbers(&c), &want, &bound);
}
