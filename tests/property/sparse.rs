//! Cases of sparse matrices in every format.

use super::draw::Draw;
use super::guarded::Case;
use half::f16;
use tilework::DType;
use tilework::prelude::*;
use tilework::program::Variant;
use tilework::reference;
use tilework::sparse::{Coo, Csr, HostMatrix, List, SparseMatrix, Target};

const TARGETS: [Target; 8] = [
    Target::Csr,
    Target::Coo,
    Target::Csc,
    Target::Ell,
    Target::Hybrid { width: Some(2) },
    Target::Jds,
    Target::Sell { slice: 4, window: 16 },
    Target::Sell { slice: 32, window: 1 },
];

/// Rows of very different lengths; columns may repeat.
fn matrix(draw: &mut Draw) -> Csr {
    let (rows, cols) = (draw.length(0, 120), draw.length(0, 120));
    let longest = if cols == 0 { 0 } else { draw.length(0, 60) as u64 };
    let mut csr = Csr { rows, cols, row_ptrs: vec![0], ..Csr::default() };
    for _ in 0..rows {
        let random = draw.random();
        let len = match random.next() % 4 {
            0 => 0,
            1 => random.next() % (longest + 1),
            _ => random.next() % (longest / 8 + 1),
        };
        csr.col_idxs.extend((0..len).map(|_| (random.next() % cols as u64) as u32));
        csr.row_ptrs.push(csr.col_idxs.len() as u32);
    }
    csr.values = draw.special(csr.col_idxs.len());
    csr
}

/// The variants for matrices of this format.
fn variant(draw: &mut Draw, variants: &'static [Variant], format: &str) -> &'static str {
    let of = |v: &&'static Variant| v.name.split('-').next() == Some(format);
    let names: Vec<_> = std::iter::once("auto").chain(variants.iter().filter(of).map(|v| v.name)).collect();
    draw.option(&names)
}

fn with_lists(mut case: Case, matrix: &HostMatrix, halves: bool) -> Case {
    for list in matrix.lists() {
        case = match list {
            List::Indices(list) => case.given(list),
            List::Values(list) if halves => case.given(&list.iter().map(|x| f16::from_f32(*x)).collect::<Vec<_>>()),
            List::Values(list) => case.given(list),
        };
    }
    case
}

/// As [`with_lists`], with the order by row that the variant takes.
fn with_order(case: Case, matrix: &HostMatrix, halves: bool, variant: &str) -> Case {
    let case = with_lists(case, matrix, halves);
    let order = if variant.ends_with("-atomic") { Vec::new() } else { matrix.by_row().unwrap() };
    order.iter().fold(case, |case, list| case.given(list))
}

pub(super) fn spmv(draw: &mut Draw) -> Case {
    let target = draw.option(&TARGETS);
    let halves = draw.option(&[false, false, true]);
    let mut csr = matrix(draw);
    if halves {
        csr.values.iter_mut().for_each(|x| *x = f16::from_f32(*x).to_f32());
    }
    let (alpha, beta) = draw.pick(&[(1.0, 0.0), (-0.5, 1.0), (0.0, 2.0)]);
    let (x, y) = (draw.special::<f32>(csr.cols), draw.special::<f32>(csr.rows));
    let want = reference::spmv(alpha, &csr, &x, beta, &y).unwrap();
    let bound = reference::spmv_bound(alpha, &csr, &x, beta, &y).unwrap();
    let statistics = csr.analyse();
    let host = reference::spconvert(&HostMatrix::Csr(csr), target).unwrap();
    let mut layout = host.layout().unwrap();
    if halves {
        layout.values = DType::F16;
    }
    let variant = variant(draw, Spmv::variants(), layout.format.name());
    let op = Spmv::new(layout).alpha(alpha).beta(beta).statistics(&statistics).variant(variant);
    with_order(Case::new::<f32>(op), &host, halves, variant).given(&x).updated(&y, want, bound)
}

pub(super) fn spmm(draw: &mut Draw) -> Case {
    let target = draw.option(&TARGETS);
    let csr = matrix(draw);
    let n = draw.length(0, 20);
    let (alpha, beta) = draw.pick(&[(1.0, 0.0), (-0.5, 1.0), (0.0, 2.0)]);
    let (b, c) = (draw.special::<f32>(csr.cols * n), draw.special::<f32>(csr.rows * n));
    let want = reference::spmm(alpha, &csr, &b, n, beta, &c).unwrap();
    let bound = reference::spmm_bound(alpha, &csr, &b, n, beta, &c).unwrap();
    let host = reference::spconvert(&HostMatrix::Csr(csr), target).unwrap();
    let layout = host.layout().unwrap();
    let variant = variant(draw, Spmm::variants(), layout.format.name());
    let op = Spmm::new(layout, n).alpha(alpha).beta(beta).variant(variant);
    with_order(Case::new::<f32>(op), &host, false, variant).given(&b).updated(&c, want, bound)
}

pub(super) fn spconvert(draw: &mut Draw) -> Case {
    let (from, to) = (draw.option(&TARGETS), draw.option(&TARGETS));
    let csr = matrix(draw);
    let from = reference::spconvert(&HostMatrix::Csr(csr), from).unwrap();
    let want = reference::spconvert(&from, to).unwrap();
    let mut op = Spconvert::new(from.layout().unwrap(), want.layout().unwrap());
    if let Target::Sell { window, .. } = to {
        op = op.window(window);
    }
    let mut case = with_lists(Case::new::<f32>(op), &from, false);
    for list in want.lists() {
        case = match list {
            List::Indices(list) => case.exactly(list),
            List::Values(list) => case.exactly(list),
        };
    }
    case
}

pub(super) fn spinsert(draw: &mut Draw) -> Case {
    let old = matrix(draw);
    let (rows, cols) = (old.rows, old.cols);
    let n = if rows * cols == 0 { 0 } else { draw.length(0, 200) };
    let mut index =
        |extent: usize| -> Vec<u32> { (0..n).map(|_| (draw.random().next() % extent as u64) as u32).collect() };
    let (row_idxs, col_idxs) = (index(rows), index(cols));
    let (halves, slots) = (draw.option(&[false, true]), draw.option(&[None, Some(3), Some(40)]));
    let held = |x: &f32| f16::from_f32(*x).to_f32();
    let rounded = |list: Vec<f32>| if halves { list.iter().map(held).collect() } else { list };
    let new = Coo { rows, cols, row_idxs, col_idxs, values: rounded(draw.special(n)) };
    let old = Csr { values: rounded(old.values.clone()), ..old };
    let old = match slots {
        Some(width) => HostMatrix::Ell(old.to_hybrid(width).unwrap().ell),
        None => HostMatrix::Coo(old.to_coo().unwrap()),
    };
    let (want, missing) = reference::spinsert(&old, &new).unwrap();
    let mut layout = old.layout().unwrap();
    if halves {
        layout.values = DType::F16;
    }
    let mut case = Case::new::<f32>(Spinsert::new(layout, n));
    let as_halves = |list: &[f32]| list.iter().map(|x| f16::from_f32(*x)).collect::<Vec<_>>();
    for (old, want) in old.lists().into_iter().zip(want.lists()) {
        case = match (old, want) {
            (List::Indices(old), List::Indices(want)) => {
                case.rewritten(&[old, &vec![9; want.len() - old.len()]].concat(), want)
            }
            (List::Values(old), List::Values(want)) => {
                let before = [old, &vec![9.0; want.len() - old.len()]].concat();
                if halves {
                    case.rewritten(&as_halves(&before), &as_halves(want))
                } else {
                    case.rewritten(&before, want)
                }
            }
            _ => unreachable!("lists of one format"),
        };
    }
    case = case.given(&new.row_idxs).given(&new.col_idxs);
    case = if halves { case.given(&as_halves(&new.values)) } else { case.given(&new.values) };
    case.exactly(&[missing as u32])
}
