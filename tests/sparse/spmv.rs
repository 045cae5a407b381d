//! Every format and variant of `Spmv` against the reference.

use crate::support::{Device, Random, assert_close, devices, gpu, numbers};
use half::f16;
use tilework::gpu::Executable;
use tilework::prelude::*;
use tilework::program::{DeviceProfile, Op, Operand, Variant};
use tilework::reference::{spmv, spmv_bound};
use tilework::sparse::{Coo, Csr, Duplicates, Format, HostMatrix, Hybrid, List, MatrixLayout, SparseMatrix, Target};
use tilework::{DType, DeviceList};
use tilework::{ErrorKind, Result};

/// The columns that `rows` gives for each row, in that order, with random values.
pub(super) fn matrix(rows: usize, cols: usize, mut columns: impl FnMut(usize, &mut Random) -> Vec<usize>) -> Csr {
    let mut random = Random::new((rows * 31 + cols) as u64);
    let mut csr = Csr { rows, cols, row_ptrs: vec![0], ..Csr::default() };
    for row in 0..rows {
        for col in columns(row, &mut random) {
            csr.col_idxs.push(col as u32);
            csr.values.push(random.unit() as f32);
        }
        csr.row_ptrs.push(csr.values.len() as u32);
    }
    csr
}

/// `len` columns, possibly repeated.
pub(super) fn any_columns(random: &mut Random, len: usize, cols: usize) -> Vec<usize> {
    (0..len).map(|_| (random.next() % cols as u64) as usize).collect()
}

pub(super) fn uniform(rows: usize, cols: usize, len: usize) -> Csr {
    matrix(rows, cols, |_, random| any_columns(random, len, cols))
}

/// Rows of 0 to 9 entries, many empty ones, and a few very long ones.
pub(super) fn ragged(rows: usize, cols: usize, long: usize) -> Csr {
    matrix(rows, cols, |_, random| {
        let len = match random.next() % 64 {
            0 => random.next() as usize % long,
            n if n < 30 => 0,
            n => n as usize % 10,
        };
        any_columns(random, len, cols)
    })
}

/// Diagonal, first row and first column.
pub(super) fn arrow(n: usize) -> Csr {
    matrix(n, n, |row, _| if row == 0 { (0..n).collect() } else { vec![0, row] })
}

pub(super) fn lower_triangle(n: usize) -> Csr {
    matrix(n, n, |row, _| (0..=row).collect())
}

pub(super) fn banded(n: usize, half: usize) -> Csr {
    matrix(n, n, |row, _| (row.saturating_sub(half)..(row + half + 1).min(n)).collect())
}

/// Entries in random order.
pub(super) fn shuffled(coo: &Coo) -> Coo {
    let mut order: Vec<usize> = (0..coo.values.len()).collect();
    let mut random = Random::new(7);
    for i in (1..order.len()).rev() {
        order.swap(i, random.next() as usize % (i + 1));
    }
    Coo {
        rows: coo.rows,
        cols: coo.cols,
        row_idxs: order.iter().map(|&i| coo.row_idxs[i]).collect(),
        col_idxs: order.iter().map(|&i| coo.col_idxs[i]).collect(),
        values: order.iter().map(|&i| coo.values[i]).collect(),
    }
}

/// The matrix in every format that it fits, some with several parameters.
pub(super) fn every_format(csr: &Csr) -> Vec<HostMatrix> {
    let coo = csr.to_coo().unwrap();
    let mut all = vec![
        HostMatrix::Csr(csr.clone()),
        HostMatrix::Coo(shuffled(&coo)),
        HostMatrix::Coo(coo),
        HostMatrix::Csc(csr.to_csc().unwrap()),
        HostMatrix::Jds(csr.to_jds().unwrap()),
        HostMatrix::Hybrid(csr.to_hybrid(3).unwrap()),
        HostMatrix::Hybrid(csr.to_hybrid(0).unwrap()),
        HostMatrix::Sell(csr.to_sell(4, 16).unwrap()),
        HostMatrix::Sell(csr.to_sell(32, 128).unwrap()),
    ];
    // A long row makes all rows long.
    if csr.analyse().longest * csr.rows < 2_000_000 {
        all.push(HostMatrix::Ell(csr.to_ell().unwrap()));
    }
    all
}

/// Asserts the kind of an error and a part of its text.
#[track_caller]
pub(super) fn refused(result: Result<()>, kind: ErrorKind, text: &str) {
    let e = result.unwrap_err();
    assert!(e.kind() == kind && e.to_string().contains(text), "{e}");
}

/// Small layouts of every format, for tests with unchecked lists.
pub(super) fn small_layouts() -> [MatrixLayout; 8] {
    [
        Format::Csr,
        Format::Csc,
        Format::Coo { sorted: true },
        Format::Coo { sorted: false },
        Format::Ell { width: 4 },
        Format::Hybrid { width: 2, list: 300, sorted: false },
        Format::Jds,
        Format::Sell { slice: 8, places: 800 },
    ]
    .map(|format| MatrixLayout { rows: 203, cols: 150, entries: 800, longest: 9, format, values: DType::F32 })
}

/// Runs a plan on unchecked pointers and indices: the result is meaningless, but no access is out of bounds.
pub(super) fn run_on_wild_lists(gpu: &Gpu, plan: &Executable) {
    let wild = |n: usize| (0..n).map(|i| (i as u32).wrapping_mul(2_654_435_761)).collect::<Vec<_>>();
    let of = |o: &Operand| (gpu.upload(&wild(o.len)).unwrap(), gpu.upload(&vec![1.0f32; o.len]).unwrap());
    let operands: Vec<_> = plan.program().operands.iter().map(|o| (o.dtype, of(o))).collect();
    let slices = operands.iter().map(|(dtype, (indices, values))| match dtype {
        DType::U32 => Slice::from(indices).untyped(),
        _ => Slice::from(values).untyped(),
    });
    let mut rec = gpu.recorder();
    plan.record(&mut rec, &slices.collect::<Vec<_>>()).unwrap();
    rec.submit().unwrap();
    let (_, (_, result)) = operands.last().unwrap();
    assert_eq!(result.read().unwrap().len(), result.len());
}

fn run(gpu: &Gpu, a: &DeviceMatrix, op: &Spmv, x: &[f32], y: &[f32]) -> Result<Vec<f32>> {
    let (x, y) = (gpu.upload(x)?, gpu.upload(y)?);
    let mut rec = gpu.recorder();
    op.plan::<f32>(gpu)?.record(&mut rec, a, &x, &y)?;
    rec.submit()?;
    y.read()
}

/// `auto`, and the variants for a format.
pub(super) fn names(variants: &'static [Variant], format: Format) -> impl Iterator<Item = &'static str> {
    let of_format = move |name: &&str| name.split('-').next() == Some(format.name());
    std::iter::once("auto").chain(variants.iter().map(|v| v.name).filter(of_format))
}

/// Rounds values to f16.
pub(super) fn halved(mut csr: Csr) -> Csr {
    for value in &mut csr.values {
        *value = f16::from_f32(*value).to_f32();
    }
    csr
}

/// Runs a product on a device in all formats and variants.
pub(super) fn check(device: &Device, csr: &Csr, alpha: f32, beta: f32) {
    check_as(device, csr, alpha, beta, |host| device.gpu.upload_matrix(host));
}

/// As [`check`], with matrices that `upload` uploads.
fn check_as(device: &Device, csr: &Csr, alpha: f32, beta: f32, upload: impl Fn(&HostMatrix) -> Result<DeviceMatrix>) {
    let mut random = Random::new(csr.entries() as u64);
    let (x, y) = (random.elements::<f32>(csr.cols), random.elements::<f32>(csr.rows));
    let want = spmv(alpha, csr, &x, beta, &y).unwrap();
    let bound = spmv_bound(alpha, csr, &x, beta, &y).unwrap();
    for host in every_format(csr) {
        let a = upload(&host).unwrap();
        for variant in names(Spmv::variants(), a.layout().format) {
            let op = Spmv::new(a.layout()).alpha(alpha).beta(beta).variant(variant);
            let what = format!("{}: {variant} {alpha} {beta} {:?}", device.label, a.layout());
            let got = run(&device.gpu, &a, &op, &x, &y).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert_close(&what, &numbers(&got), &want, &bound);
        }
    }
}

#[test]
fn every_format_and_variant_matches_reference() {
    for device in devices() {
        check(device, &ragged(1500, 700, 300), 1.0, 0.0);
        check(device, &arrow(2500), -0.5, 2.0);
        if device.main {
            check(device, &uniform(700, 1200, 16), 1.0, 1.0);
            check(device, &uniform(90, 3000, 250), 1.0, 0.0);
            check(device, &banded(1000, 4), 2.0, 0.0);
            check(device, &lower_triangle(130), 1.0, -1.0);
            check(device, &uniform(5000, 5000, 1), 0.0, 0.5);
        }
    }
}

#[test]
fn f16_values_match_reference() {
    for device in devices() {
        check_as(device, &halved(ragged(801, 700, 300)), 1.5, 1.0, |host| device.gpu.upload_matrix_f16(host));
    }
    let Some(gpu) = gpu() else { return };
    // To nearest, ties to even; and too large.
    let (row_ptrs, col_idxs) = (vec![0, 1, 2, 3], vec![0, 0, 0]);
    let values = vec![1.0 + 2f32.powi(-11), 1.0 + 3.0 * 2f32.powi(-11), 70_000.0];
    let a = gpu.upload_matrix_f16(&Csr { rows: 3, cols: 1, row_ptrs, col_idxs, values }).unwrap();
    let y = gpu.spmv(&a, &gpu.upload(&[1.0f32]).unwrap()).unwrap().read().unwrap();
    assert_eq!(y, [1.0, 1.0 + 2f32.powi(-9), f32::INFINITY]);
    let coo = gpu.convert_matrix(&a, Target::Coo).unwrap();
    assert_eq!(
        (coo.layout().values, coo.read().unwrap().to_csr().unwrap()),
        (DType::F16, a.read().unwrap().to_csr().unwrap())
    );
    assert_eq!(a.read().unwrap().lists()[2], List::Values(&[1.0, 1.0 + 2f32.powi(-9), f32::INFINITY]));
}

#[test]
fn scalars_on_the_device_match_reference() {
    let csr = ragged(500, 300, 200);
    let (x, before) = (Random::new(5).elements::<f32>(300), Random::new(6).elements::<f32>(500));
    for device in devices() {
        let gpu = &device.gpu;
        for host in every_format(&csr) {
            let a = gpu.upload_matrix(&host).unwrap();
            for variant in names(Spmv::variants(), a.layout().format) {
                let plan = Spmv::new(a.layout()).variant(variant).with_scalars().plan::<f32>(gpu).unwrap();
                for [alpha, beta] in [[-0.5, 2.0], [0.0, 1.0], [1.5, 0.0]] {
                    let factor = if alpha == 0.0 { vec![f32::NAN; 300] } else { x.clone() };
                    let old = if beta == 0.0 { vec![f32::NAN; 500] } else { before.clone() };
                    let want = spmv(alpha, &csr, &factor, beta, &old).unwrap();
                    let bound = spmv_bound(alpha, &csr, &factor, beta, &old).unwrap();
                    let (x, y) = (gpu.upload(&factor).unwrap(), gpu.upload(&old).unwrap());
                    let scalars = gpu.upload(&[alpha, beta]).unwrap();
                    let mut rec = gpu.recorder();
                    plan.with_scalars(&scalars).record(&mut rec, &a, &x, &y).unwrap();
                    rec.submit().unwrap();
                    let what = format!("{}: {variant} {alpha} {beta}", device.label);
                    assert_close(&what, &numbers(&y.read().unwrap()), &want, &bound);
                }
            }
        }
    }
}

#[test]
fn an_order_by_row_is_made_once() {
    let Some(gpu) = gpu() else { return };
    let csr = ragged(300, 200, 50);
    let (x, y) = (gpu.upload(&Random::new(5).elements::<f32>(200)).unwrap(), gpu.alloc::<f32>(300).unwrap());
    let coo = csr.to_coo().unwrap();
    let hybrid = csr.to_hybrid(2).unwrap();
    let unsorted = Hybrid { coo: shuffled(&hybrid.coo), ..hybrid };
    for host in [HostMatrix::Csc(csr.to_csc().unwrap()), HostMatrix::Coo(shuffled(&coo)), HostMatrix::Hybrid(unsorted)]
    {
        let mut a = gpu.upload_matrix(&host).unwrap();
        let format = a.layout().format.name();
        let plan = Spmv::new(a.layout()).plan::<f32>(gpu).unwrap();
        // No sort in the program; three lists of the order among its operands.
        let labels: Vec<_> = plan.program().kernels.iter().map(|kernel| kernel.label()).collect();
        assert!(labels.iter().all(|label| !label.contains("sort")), "{format}: {labels:?}");
        let order: Vec<_> =
            plan.program().operands.iter().filter(|o| o.name.starts_with("by_row")).map(|o| o.len).collect();
        assert_eq!(order, host.by_row().unwrap().iter().map(Vec::len).collect::<Vec<_>>(), "{format}");
        let product = |a: &DeviceMatrix| {
            let mut rec = gpu.recorder();
            plan.record(&mut rec, a, &x, &y).unwrap();
            rec.submit().unwrap();
            y.read().unwrap()
        };
        let first = product(&a);
        let [.., DeviceList::Values(values)] = a.lists() else { panic!("{format}") };
        // New values need no new order.
        let doubled: Vec<f32> = values.read().unwrap().iter().map(|value| 2.0 * value).collect();
        values.write(&doubled).unwrap();
        let second = product(&a);
        if format != "hybrid" {
            assert_eq!(second, first.iter().map(|sum| 2.0 * sum).collect::<Vec<_>>(), "{format}");
        }
        gpu.order_matrix(&mut a).unwrap();
        assert_eq!(product(&a), second, "{format}");
    }
    // Other indices: the order is made anew.
    let two = |row_idxs: Vec<u32>| Coo { rows: 2, cols: 1, row_idxs, col_idxs: vec![0; 2], values: vec![3.0, 5.0] };
    let mut a = gpu.upload_matrix(&two(vec![1, 0])).unwrap();
    let one = gpu.upload(&[1.0f32]).unwrap();
    assert_eq!(gpu.spmv(&a, &one).unwrap().read().unwrap(), [5.0, 3.0]);
    let [DeviceList::Indices(rows), ..] = a.lists() else { panic!() };
    rows.write(&[1, 1]).unwrap();
    gpu.order_matrix(&mut a).unwrap();
    assert_eq!(gpu.spmv(&a, &one).unwrap().read().unwrap(), [0.0, 8.0]);
}

#[test]
fn a_matrix_of_entries_on_the_device_multiplies_and_its_values_change() {
    let Some(gpu) = gpu() else { return };
    let coo = shuffled(&ragged(90, 70, 40).to_coo().unwrap());
    let [rows, cols] = [&coo.row_idxs, &coo.col_idxs].map(|list| gpu.upload(list).unwrap());
    let values = gpu.upload(&coo.values).unwrap();
    let a = gpu.matrix_of_entries([90, 70], &rows, &cols, values.clone()).unwrap();
    assert_eq!(a.layout(), coo.layout().unwrap());
    let x = gpu.upload(&[1.0f32; 70]).unwrap();
    let plan = Spmv::new(a.layout()).plan::<f32>(gpu).unwrap();
    let y = gpu.alloc::<f32>(90).unwrap();
    for factor in [1.0, -2.0] {
        let changed: Vec<f32> = coo.values.iter().map(|value| factor * value).collect();
        a.values().unwrap().write(&changed).unwrap();
        let mut rec = gpu.recorder();
        plan.record(&mut rec, &a, &x, &y).unwrap();
        rec.submit().unwrap();
        let csr = Csr::from_coo(&Coo { values: changed, ..coo.clone() }).unwrap();
        let want = spmv(1.0, &csr, &[1.0; 70], 0.0, &[0.0; 90]).unwrap();
        let bound = spmv_bound(1.0, &csr, &[1.0; 70], 0.0, &[0.0; 90]).unwrap();
        assert_close("changed values", &numbers(&y.read().unwrap()), &want, &bound);
    }
    refused(a.values_f16().map(drop), ErrorKind::Shape, "no single list of f16");
    let hybrid = gpu.upload_matrix(&ragged(9, 9, 5).to_hybrid(1).unwrap()).unwrap();
    refused(hybrid.values().map(drop), ErrorKind::Shape, "hybrid");
    // The largest indices are one too large.
    let [row, col] = [&coo.row_idxs, &coo.col_idxs].map(|list| *list.iter().max().unwrap());
    for (extents, text) in [
        ([row as usize, 70], format!("an entry in row {row}")),
        ([90, col as usize], format!("an entry in column {col}")),
    ] {
        let few = gpu.matrix_of_entries(extents, &rows, &cols, values.clone()).map(drop);
        refused(few, ErrorKind::Shape, &text);
    }
    let short = gpu.upload(&[1.0f32]).unwrap();
    refused(gpu.matrix_of_entries([90, 70], &rows, &cols, short).map(drop), ErrorKind::Shape, "`values`");
    let none = gpu.alloc::<u32>(0).unwrap();
    let empty = gpu.matrix_of_entries([3, 70], &none, &none, gpu.alloc::<f16>(0).unwrap()).unwrap();
    assert_eq!((empty.layout().entries, empty.layout().values), (0, DType::F16));
    assert_eq!(gpu.spmv(&empty, &x).unwrap().read().unwrap(), [0.0; 3]);
}

#[test]
fn tiles_of_every_size_match_reference() {
    let csr = ragged(3000, 2500, 2000);
    let x = Random::new(3).elements::<f32>(2500);
    let want = spmv(1.0, &csr, &x, 0.0, &[0.0; 3000]).unwrap();
    let bound = spmv_bound(1.0, &csr, &x, 0.0, &[0.0; 3000]).unwrap();
    for device in devices().iter().filter(|device| device.main) {
        let gpu = &device.gpu;
        for (workgroup_size, lanes) in [(256, 2), (64, 16), (32, 32)] {
            let a = gpu.upload_matrix(&csr).unwrap();
            let op = Spmv::new(a.layout()).variant("csr-vector").tile(workgroup_size, lanes);
            let got = run(gpu, &a, &op, &x, &[0.0; 3000]).unwrap();
            let what = format!("{}: csr-vector {workgroup_size} x {lanes}", device.label);
            assert_close(&what, &numbers(&got), &want, &bound);
        }
        // The sizes for cards, and sizes so small that carries have carries.
        for (workgroup_size, items) in [(256, 5), (256, 7), (4, 3), (2, 2)] {
            let (csr, coo) = (gpu.upload_matrix(&csr).unwrap(), gpu.upload_matrix(&csr.to_coo().unwrap()).unwrap());
            for (a, variant) in [(&csr, "csr-merge"), (&csr, "csr-segmented"), (&coo, "coo")] {
                let op = Spmv::new(a.layout()).variant(variant).tile(workgroup_size, items);
                let got = run(gpu, a, &op, &x, &[0.0; 3000]).unwrap();
                let what = format!("{}: {variant} {workgroup_size} x {items}", device.label);
                assert_close(&what, &numbers(&got), &want, &bound);
            }
        }
    }
}

#[test]
fn small_and_empty_matrices_match_reference() {
    for device in devices().iter().filter(|device| device.main) {
        for (rows, cols) in [(0, 0), (0, 5), (5, 0), (1, 1), (1, 70), (70, 1)] {
            check(device, &uniform(rows, cols, usize::from(cols > 0)), 1.0, 0.5);
            check(device, &uniform(rows, cols, 0), 1.0, 0.0);
        }
    }
}

#[test]
fn rows_longer_than_one_dispatch_match_reference() {
    for device in devices().iter().filter(|device| device.main) {
        // A row of 150,000 entries, of which a software driver processes at most 65,535 per loop.
        let csr = matrix(70, 1000, |row, random| any_columns(random, if row == 40 { 150_000 } else { row % 3 }, 1000));
        check(device, &csr, 1.0, 0.0);
        check(device, &csr.transposed().unwrap(), 1.5, -1.0);
    }
}

#[test]
fn padding_values_are_ignored() {
    let csr = ragged(300, 200, 40);
    let x = vec![1.0; 200];
    let want = spmv(1.0, &csr, &x, 0.0, &[0.0; 300]).unwrap();
    let bound = spmv_bound(1.0, &csr, &x, 0.0, &[0.0; 300]).unwrap();
    let (mut ell, mut hybrid, mut sell) =
        (csr.to_ell().unwrap(), csr.to_hybrid(5).unwrap(), csr.to_sell(8, 64).unwrap());
    let spoil = |col_idxs: &[u32], values: &mut [f32]| {
        for (col, value) in col_idxs.iter().zip(values) {
            if *col == tilework::sparse::PADDING {
                *value = f32::NAN;
            }
        }
    };
    spoil(&ell.col_idxs, &mut ell.values);
    spoil(&hybrid.ell.col_idxs, &mut hybrid.ell.values);
    spoil(&sell.col_idxs, &mut sell.values);
    for device in devices() {
        let gpu = &device.gpu;
        let uploads = [gpu.upload_matrix(&ell), gpu.upload_matrix(&hybrid), gpu.upload_matrix(&sell)];
        for a in uploads {
            let y = gpu.spmv(&a.unwrap(), &gpu.upload(&x).unwrap()).unwrap().read().unwrap();
            assert_close(&device.label, &numbers(&y), &want, &bound);
        }
    }
}

#[test]
fn cost_ignores_padding() {
    // One row is long, so nearly all slots of `ell` are padding.
    let mut csr = Csr { rows: 300, cols: 200, row_ptrs: vec![0], ..Csr::default() };
    for row in 0..300u32 {
        let columns = if row == 7 { 200 } else { 2 };
        csr.col_idxs.extend(0..columns);
        csr.row_ptrs.push(csr.col_idxs.len() as u32);
    }
    csr.values = vec![1.0; csr.col_idxs.len()];
    let entries = csr.values.len();
    let bytes = |matrix: &dyn SparseMatrix, beta: f32| {
        let spmv = Spmv::new(matrix.layout().unwrap()).beta(beta);
        let program = spmv.lower(&DeviceProfile::h100()).unwrap();
        let spmm = Spmm::new(matrix.layout().unwrap(), 1).beta(beta).lower(&DeviceProfile::h100()).unwrap();
        assert_eq!(program.cost.flop, 2.0 * entries as f64);
        assert_eq!(program.cost, spmm.cost);
        program.cost.bytes as usize
    };
    let (slots, vectors) = (8 * entries, 4 * (200 + 300));
    assert_eq!(bytes(&csr.to_ell().unwrap(), 0.0), slots + vectors);
    assert_eq!(bytes(&csr.to_ell().unwrap(), 1.0), slots + vectors + 4 * 300);
    let hybrid = csr.to_hybrid(3).unwrap();
    // Overflow entries go to the list, which has rows too.
    assert_eq!(bytes(&hybrid, 0.0), slots + 4 * 197 + vectors);
    let sell = csr.to_sell(32, 64).unwrap();
    assert_eq!(bytes(&sell, 0.0), slots + 4 * (sell.row_order.len() + sell.slice_ptrs.len()) + vectors);
    assert_eq!(bytes(&csr, 0.0), slots + 4 * 301 + vectors);
}

#[test]
fn nan_propagates_from_x_and_not_from_unread_y() {
    let Some(gpu) = gpu() else { return };
    let mut csr = banded(40, 1);
    csr.values[10] = f32::NAN;
    let x = vec![1.0; 40];
    let want = spmv(1.0, &csr, &x, 0.0, &[0.0; 40]).unwrap();
    assert_eq!(want.iter().filter(|y| y.is_nan()).count(), 1);
    for host in every_format(&csr) {
        let a = gpu.upload_matrix(&host).unwrap();
        for variant in names(Spmv::variants(), a.layout().format) {
            let y = run(gpu, &a, &Spmv::new(a.layout()).variant(variant), &x, &[f32::NAN; 40]).unwrap();
            let nan: Vec<bool> = y.iter().map(|y| y.is_nan()).collect();
            assert_eq!(nan, want.iter().map(|y| y.is_nan()).collect::<Vec<_>>(), "{variant}");
        }
    }
}

#[test]
fn results_are_reproducible() {
    let Some(gpu) = gpu() else { return };
    let csr = ragged(900, 800, 500);
    let x = Random::new(1).elements::<f32>(800);
    for host in every_format(&csr) {
        let a = gpu.upload_matrix(&host).unwrap();
        for variant in names(Spmv::variants(), a.layout().format).filter(|name| !name.ends_with("atomic")) {
            let op = Spmv::new(a.layout()).deterministic().variant(variant);
            let bits = || run(gpu, &a, &op, &x, &[0.0; 900]).unwrap().into_iter().map(f32::to_bits).collect();
            let first: Vec<u32> = bits();
            assert_eq!(first, bits(), "{variant}");
        }
    }
}

#[test]
fn unchecked_lists_stay_within_bounds() {
    let Some(gpu) = gpu() else { return };
    for layout in small_layouts() {
        for variant in names(Spmv::variants(), layout.format) {
            let plan = Spmv::new(layout).variant(variant).plan::<f32>(gpu).unwrap();
            run_on_wild_lists(gpu, &plan.into_executable());
        }
    }
}

#[test]
fn lanes_per_row_do_not_exceed_the_workgroup() {
    let mut profile = DeviceProfile::mesa();
    profile.subgroup_sizes = (128, 128);
    let long = MatrixLayout {
        rows: 10,
        cols: 10_000,
        entries: 100_000,
        longest: 10_000,
        ..ragged(10, 10, 3).layout().unwrap()
    };
    let program = Op::<f32>::lower(&Spmv::new(long).variant("csr-vector"), &profile).unwrap();
    assert!(program.kernels[0].spec.to_string().contains("LANES=64"), "{}", program.kernels[0].spec);
}

#[test]
fn rejects_invalid_arguments() {
    let profile = DeviceProfile::webgpu_defaults();
    let lower = |op: &Spmv| op.lower(&profile).map(drop);
    let layout = ragged(100, 100, 10).layout().unwrap();
    let op = Spmv::new(layout);
    refused(lower(&op.clone().variant("dia")), ErrorKind::InvalidArgument, "csr-merge");
    refused(lower(&op.clone().variant("ell")), ErrorKind::InvalidArgument, "takes another format");
    let coo = Spmv::new(MatrixLayout { format: Format::Coo { sorted: true }, ..layout });
    let atomic = coo.variant("coo-atomic").deterministic();
    refused(lower(&atomic), ErrorKind::Unsupported, "use `auto`");
    let integers = Spmv::new(MatrixLayout { values: DType::I32, ..layout });
    refused(lower(&integers), ErrorKind::InvalidArgument, "values of i32");
    let no_slices = MatrixLayout { format: Format::Sell { slice: 0, places: 9 }, ..layout };
    refused(lower(&Spmv::new(no_slices)), ErrorKind::InvalidArgument, "slices of 0 rows");
    let wide = MatrixLayout { rows: 1 << 20, format: Format::Ell { width: 200_000 }, ..layout };
    refused(lower(&Spmv::new(wide)), ErrorKind::TooLarge, "209715200000");
    let wide = MatrixLayout { format: Format::Ell { width: 1 << 20 }, ..layout };
    refused(lower(&Spmv::new(wide)), ErrorKind::TooLarge, "less padding");
    let Some(gpu) = gpu() else { return };
    let csr = banded(10, 1);
    let upload = |csr: &Csr| gpu.upload_matrix(csr).map(drop);
    refused(upload(&Csr { cols: 9, ..csr.clone() }), ErrorKind::Shape, "`col_idxs`");
    refused(upload(&Csr { values: vec![1.0], ..csr.clone() }), ErrorKind::Shape, "`col_idxs` has");
    let mut falling = csr.clone();
    falling.row_ptrs[3] = 0;
    refused(upload(&falling), ErrorKind::Shape, "`row_ptrs`[3]");
    let a = gpu.upload_matrix(&csr).unwrap();
    let short = gpu.upload(&[1.0f32; 9]).unwrap();
    refused(gpu.spmv(&a, &short).map(drop), ErrorKind::Shape, "x");
    let other = gpu.upload_matrix(&csr.to_coo().unwrap()).unwrap();
    let plan = Spmv::new(a.layout()).plan::<f32>(gpu).unwrap();
    let (x, y) = (gpu.upload(&[1.0f32; 10]).unwrap(), gpu.alloc::<f32>(10).unwrap());
    refused(plan.record(&mut gpu.recorder(), &other, &x, &y), ErrorKind::Shape, "stored as coo");
    let twice = Coo { rows: 1, cols: 1, row_idxs: vec![0; 2], col_idxs: vec![0; 2], values: vec![1.0, 2.0] };
    let refuse = Csr::from_triplets(&twice, Duplicates::Refuse).map(drop);
    refused(refuse, ErrorKind::InvalidArgument, "several entries at row 0");
    let sum = gpu.upload_matrix(&twice).unwrap();
    let y = gpu.spmv(&sum, &gpu.upload(&[2.0f32]).unwrap()).unwrap();
    assert_eq!(y.read().unwrap(), [6.0]);
}
