//! Conjugate gradients on systems that are known to be positive definite, and on some that are not.

use super::spmv::{banded, every_format, matrix};
use crate::support::{Random, devices, gpu};
use tilework::prelude::*;
use tilework::reference::{self, spmv};
use tilework::sparse::{ConjugateGradient, Csr, Outcome, Preconditioner, Solution};
use tilework::{ErrorKind, Result};

const BOTH: [Preconditioner; 2] = [Preconditioner::None, Preconditioner::Jacobi];

/// The negative Laplacian of a grid with edges held at 0: each point against its neighbours.
pub(super) fn laplacian(extents: &[usize]) -> Csr {
    let n = extents.iter().product();
    let mut csr = Csr { rows: n, cols: n, row_ptrs: vec![0], ..Csr::default() };
    for point in 0..n {
        let mut row = vec![(point as u32, 2.0 * extents.len() as f32)];
        let mut stride = 1;
        for &extent in extents {
            let at = point / stride % extent;
            if at > 0 {
                row.push(((point - stride) as u32, -1.0));
            }
            if at + 1 < extent {
                row.push(((point + stride) as u32, -1.0));
            }
            stride *= extent;
        }
        row.sort_unstable_by_key(|entry| entry.0);
        csr.col_idxs.extend(row.iter().map(|entry| entry.0));
        csr.values.extend(row.iter().map(|entry| entry.1));
        csr.row_ptrs.push(csr.values.len() as u32);
    }
    csr
}

/// Banded, symmetric, and positive definite since the diagonal outweighs its row; rows of very different sizes.
fn dominant(n: usize, half: usize) -> Csr {
    let mut csr = banded(n, half);
    let size = |i: usize| 1.0 + (i % 7) as f32 * 3.0;
    for row in 0..n {
        let range = csr.row_ptrs[row] as usize..csr.row_ptrs[row + 1] as usize;
        for at in range {
            let col = csr.col_idxs[at] as usize;
            let near = ((row.min(col) * 7 + row.abs_diff(col)) % 5) as f32 / 5.0 - 0.4;
            csr.values[at] = size(row) * size(col) * if row == col { half as f32 } else { near };
        }
    }
    csr
}

fn solve(gpu: &Gpu, a: &DeviceMatrix, cg: &ConjugateGradient, b: &[f32], x: &[f32]) -> Result<(Solution, Vec<f32>)> {
    let (b, x) = (gpu.upload(b)?, gpu.upload(x)?);
    let mut heard = Vec::new();
    let solution = gpu.conjugate_gradient(cg)?.solve(a, &b, &x, |iteration, residual| {
        assert_eq!(iteration, heard.len());
        heard.push(residual);
    })?;
    if solution.history.len() > 1 {
        assert_eq!(heard, solution.history);
    }
    Ok((solution, x.read()?))
}

/// The residual of a solution in f64, as a part of b.
pub(super) fn residual(a: &Csr, x: &[f32], b: &[f32]) -> f64 {
    let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
    let apart = spmv(1.0, a, x, -1.0, b).unwrap();
    norm(&apart) / norm(&b.iter().map(|&b| f64::from(b)).collect::<Vec<_>>())
}

fn systems() -> Vec<Csr> {
    vec![laplacian(&[40]), laplacian(&[23, 31]), laplacian(&[7, 9, 11]), dominant(700, 6)]
}

#[test]
fn f16_systems_are_solved_in_every_format() {
    let Some(gpu) = gpu() else { return };
    // Its values are exact in f16.
    let csr = laplacian(&[9, 11]);
    let mut random = Random::new(5);
    let (b, x) = (random.elements::<f32>(csr.rows), random.elements::<f32>(csr.rows));
    for host in every_format(&csr) {
        let a = gpu.upload_matrix_f16(&host).unwrap();
        let cg = ConjugateGradient::new(a.layout()).preconditioner(Preconditioner::Jacobi);
        let (solution, x) = solve(gpu, &a, &cg, &b, &x).unwrap();
        assert_eq!(solution.outcome, Outcome::Converged, "{:?}: {solution}", a.layout());
        assert!(residual(&csr, &x, &b) <= 1.01e-5, "{:?}", a.layout());
    }
}

#[test]
fn systems_match_reference_in_every_format() {
    for device in devices() {
        for csr in systems().iter().take(if device.main { 4 } else { 2 }) {
            let mut random = Random::new(csr.rows as u64);
            let (b, x) = (random.elements::<f32>(csr.rows), random.elements::<f32>(csr.rows));
            for preconditioner in BOTH {
                let jacobi = preconditioner == Preconditioner::Jacobi;
                let (_, wanted) = reference::conjugate_gradient(csr, &b, &x, jacobi, 1e-5, 1000).unwrap();
                let formats = if device.main && csr.rows == 713 { 10 } else { 1 };
                for host in every_format(csr).into_iter().take(formats) {
                    let a = device.gpu.upload_matrix(&host).unwrap();
                    let cg = ConjugateGradient::new(a.layout()).preconditioner(preconditioner).check_every(8);
                    let (solution, x) = solve(&device.gpu, &a, &cg, &b, &x).unwrap();
                    let what = format!("{}: {preconditioner:?} {:?}: {solution}", device.label, a.layout());
                    assert_eq!(solution.outcome, Outcome::Converged, "{what}");
                    let (iterations, want) = (solution.iterations, wanted.len() - 1);
                    assert!(iterations.abs_diff(want) <= 2 + want / 10, "{what}, {want} by the reference");
                    assert!((solution.history[0] / wanted[0] - 1.0).abs() < 1e-4, "{what}");
                    let apart = residual(csr, &x, &b);
                    assert!(apart <= 1.01e-5 && (solution.residual - apart).abs() < 2e-6, "{what}, is {apart:e}");
                }
            }
        }
    }
}

#[test]
fn jacobi_saves_iterations_on_badly_scaled_rows() {
    let Some(gpu) = gpu() else { return };
    let csr = dominant(500, 3);
    let a = gpu.upload_matrix(&csr).unwrap();
    let b = Random::new(2).elements::<f32>(500);
    let [plain, jacobi] = BOTH.map(|preconditioner| {
        let cg = ConjugateGradient::new(a.layout()).preconditioner(preconditioner);
        solve(gpu, &a, &cg, &b, &[0.0; 500]).unwrap().0.iterations
    });
    assert!(2 * jacobi < plain, "{jacobi} {plain}");
}

#[test]
fn results_do_not_depend_on_how_often_convergence_is_checked() {
    let Some(gpu) = gpu() else { return };
    let csr = laplacian(&[20, 20]);
    let a = gpu.upload_matrix(&csr).unwrap();
    let b = Random::new(4).elements::<f32>(400);
    let run = |every: usize| {
        let cg = ConjugateGradient::new(a.layout()).check_every(every).tolerance(1e-4);
        solve(gpu, &a, &cg, &b, &[0.0; 400]).unwrap()
    };
    let (first, x) = run(7);
    assert!(first.iterations > 20 && first.history.len() == first.iterations + 1);
    for every in [7, 1, 100] {
        let (again, y) = run(every);
        assert!(x == y && first == again, "{every}");
    }
}

#[test]
fn any_number_of_partial_sums_matches_reference() {
    let Some(gpu) = gpu() else { return };
    let csr = laplacian(&[60, 50]);
    let a = gpu.upload_matrix(&csr).unwrap();
    let b = Random::new(6).elements::<f32>(3000);
    let (_, wanted) = reference::conjugate_gradient(&csr, &b, &[0.0; 3000], true, 1e-5, 1000).unwrap();
    // The number for cards; one part; and more parts than a workgroup sums at once.
    for (size, items, max) in [(256, 4, 1024), (64, 100, 1), (8, 1, 1000), (2, 3, 90)] {
        let cg = ConjugateGradient::new(a.layout()).preconditioner(Preconditioner::Jacobi);
        let (solution, x) = solve(gpu, &a, &cg.tile(size, items, max), &b, &[0.0; 3000]).unwrap();
        let what = format!("{size} x {items}, {max}: {solution}");
        assert!(solution.iterations.abs_diff(wanted.len() - 1) <= 5 && residual(&csr, &x, &b) < 1.01e-5, "{what}");
        let near = solution.history.iter().zip(&wanted).take(10).all(|(h, w)| (h / w - 1.0).abs() < 1e-3);
        assert!(near, "{what}");
    }
}

#[test]
fn iterations_stop_at_the_limit_and_resume() {
    let Some(gpu) = gpu() else { return };
    let csr = laplacian(&[30, 30]);
    let a = gpu.upload_matrix(&csr).unwrap();
    let b = gpu.upload(&Random::new(4).elements::<f32>(900)).unwrap();
    let x = gpu.alloc_zeroed::<f32>(900).unwrap();
    let cg = ConjugateGradient::new(a.layout()).iterations(13).check_every(5);
    let solver = gpu.conjugate_gradient(&cg).unwrap();
    let solution = solver.solve(&a, &b, &x, |_, _| ()).unwrap();
    assert_eq!((solution.outcome, solution.iterations), (Outcome::Limit, 13));
    assert!((solution.residual / solution.history[13] - 1.0).abs() < 1e-3);
    assert!(solution.to_string().starts_with("not converged: the maximum number of iterations is reached after 13"));
    let again = solver.solve(&a, &b, &x, |_, _| ()).unwrap();
    assert!((again.history[0] / solution.residual - 1.0).abs() < 1e-5);
}

#[test]
fn iterations_record_into_a_callers_encoder() {
    let Some(gpu) = gpu() else { return };
    let csr = laplacian(&[15, 15]);
    let a = gpu.upload_matrix(&csr).unwrap();
    let b = Random::new(9).elements::<f32>(225);
    let (on_device, x) = (gpu.upload(&b).unwrap(), gpu.alloc_zeroed::<f32>(225).unwrap());
    let solver = gpu.conjugate_gradient(&ConjugateGradient::new(a.layout()).check_every(30)).unwrap();
    let mut encoder = gpu.device().create_command_encoder(&Default::default());
    let mut rec = gpu.recorder_in(&mut encoder);
    solver.record_start(&mut rec, &a, &on_device, &x).unwrap();
    for _ in 0..4 {
        solver.record_steps(&mut rec, &a, &on_device, &x).unwrap();
    }
    rec.finish();
    gpu.queue().submit([encoder.finish()]);
    let (iterations, outcome) = solver.progress().unwrap();
    assert!(iterations < 100 && outcome == Some(Outcome::Converged), "{iterations} {outcome:?}");
    assert!(residual(&csr, &x.read().unwrap(), &b) < 1.01e-5);
    assert_eq!(solver.program().op, "conjugate-gradient");
}

#[test]
fn unsolvable_systems_report_the_reason() {
    for device in devices() {
        let gpu = &device.gpu;
        let outcome = |csr: &Csr, preconditioner, b: &[f32]| {
            let a = gpu.upload_matrix(csr).unwrap();
            let cg = ConjugateGradient::new(a.layout()).preconditioner(preconditioner).iterations(200);
            solve(gpu, &a, &cg, b, &vec![0.0; csr.rows]).unwrap().0
        };
        let n = 60;
        let b = Random::new(1).elements::<f32>(n);
        // One negative eigenvalue.
        let mut indefinite = laplacian(&[n]);
        let middle = indefinite.row_ptrs[30] as usize + 1;
        assert_eq!(indefinite.col_idxs[middle], 30);
        indefinite.values[middle] = -5.0;
        let solution = outcome(&indefinite, Preconditioner::None, &b);
        assert!(matches!(solution.outcome, Outcome::NotPositiveDefinite(c) if c < 0.0), "{solution}");
        assert!(solution.to_string().contains("p^T A p = -"), "{solution}");
        assert_eq!(solution.history.len(), solution.iterations + 1);
        let solution = outcome(&indefinite, Preconditioner::Jacobi, &b);
        assert_eq!((solution.outcome, solution.iterations), (Outcome::Diagonal(30), 0), "{solution}");
        // Some rows have no diagonal entry; the error names the first.
        let gaps = matrix(n, n, |row, _| if row % 20 == 15 { vec![] } else { vec![row] });
        let gaps = Csr { values: vec![2.0; gaps.values.len()], ..gaps };
        assert_eq!(outcome(&gaps, Preconditioner::Jacobi, &b).outcome, Outcome::Diagonal(15));
        let nothing = matrix(n, n, |_, _| vec![]);
        assert_eq!(outcome(&nothing, Preconditioner::Jacobi, &b).outcome, Outcome::Diagonal(0));
        assert_eq!(outcome(&nothing, Preconditioner::None, &b).outcome, Outcome::NotPositiveDefinite(0.0));
        // NaN and infinities.
        let mut wrong = laplacian(&[n]);
        wrong.values[7] = f32::NAN;
        assert_eq!(outcome(&wrong, Preconditioner::None, &b).outcome, Outcome::NotFinite);
        let mut infinite = b.clone();
        infinite[5] = f32::INFINITY;
        let solution = outcome(&laplacian(&[n]), Preconditioner::None, &infinite);
        assert_eq!(solution.outcome, Outcome::NotFinite);
        // Tolerances that f32 cannot reach, also with intermediate squares outside its range.
        for (size, tolerance) in [(1.0, 1e-12), (1.0, 0.0), (1e-6, 0.0), (1e3, 0.0), (1e-25, 0.0)] {
            let mut csr = laplacian(&[n]);
            csr.values.iter_mut().for_each(|value| *value *= size);
            let a = gpu.upload_matrix(&csr).unwrap();
            let cg = ConjugateGradient::new(a.layout()).tolerance(tolerance);
            let (solution, x) = solve(gpu, &a, &cg, &b, &vec![0.0; n]).unwrap();
            let (outcome, max) = if size > 1e-20 { (Outcome::Stagnated, 1e-5) } else { (Outcome::TooSmall, 1e-2) };
            assert_eq!(solution.outcome, outcome, "{size} {tolerance}: {solution}");
            assert!(solution.residual < max && residual(&csr, &x, &b) < max, "{solution}");
        }
    }
}

#[test]
fn solved_systems_take_no_iteration() {
    let Some(gpu) = gpu() else { return };
    let csr = laplacian(&[8, 8]);
    let a = gpu.upload_matrix(&csr).unwrap();
    let cg = ConjugateGradient::new(a.layout());
    // b = 0 is solved by 0, whatever the initial guess.
    let (solution, x) = solve(gpu, &a, &cg, &[0.0; 64], &[3.0; 64]).unwrap();
    assert_eq!((solution.outcome, solution.iterations, x), (Outcome::Converged, 0, vec![0.0; 64]));
    let x = [1.0; 64];
    let b: Vec<f32> = spmv(1.0, &csr, &x, 0.0, &x).unwrap().into_iter().map(|b| b as f32).collect();
    let (solution, y) = solve(gpu, &a, &cg, &b, &x).unwrap();
    assert_eq!((solution.outcome, solution.iterations, y.as_slice()), (Outcome::Converged, 0, &x[..]));
    assert_eq!((solution.residual, solution.history.len()), (0.0, 1));
    // A residual that is small enough for any b.
    let (solution, _) = solve(gpu, &a, &cg.clone().absolute(100.0), &b, &[0.0; 64]).unwrap();
    assert_eq!((solution.outcome, solution.iterations), (Outcome::Converged, 0));
    for n in [0, 1] {
        let csr = laplacian(&[n]);
        let a = gpu.upload_matrix(&csr).unwrap();
        for preconditioner in BOTH {
            let cg = ConjugateGradient::new(a.layout()).preconditioner(preconditioner);
            let (solution, x) = solve(gpu, &a, &cg, &vec![3.0; n], &vec![0.0; n]).unwrap();
            assert_eq!((solution.outcome, solution.iterations), (Outcome::Converged, n));
            assert_eq!(x, vec![1.5; n]);
        }
    }
}

#[test]
fn rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let refused = |cg: &ConjugateGradient, kind: ErrorKind, text: &str| {
        let e = gpu.conjugate_gradient(cg).map(drop).unwrap_err();
        assert!(e.kind() == kind && e.to_string().contains(text), "{e}");
    };
    let csr = laplacian(&[12]);
    let a = gpu.upload_matrix(&csr).unwrap();
    let cg = ConjugateGradient::new(a.layout());
    let wide = tilework::sparse::MatrixLayout { cols: 13, ..a.layout() };
    refused(&ConjugateGradient::new(wide), ErrorKind::Shape, "12 x 13; it must be square");
    refused(&cg.clone().tolerance(-1.0), ErrorKind::InvalidArgument, "the tolerance is -1");
    refused(&cg.clone().absolute(f32::NAN), ErrorKind::InvalidArgument, "the absolute tolerance is NaN");
    refused(&cg.clone().iterations(0), ErrorKind::InvalidArgument, "0 iterations");
    refused(&cg.clone().check_every(0), ErrorKind::InvalidArgument, "between checks");
    refused(&cg.clone().variant("ell"), ErrorKind::InvalidArgument, "takes another format");
    let coo = gpu.upload_matrix(&csr.to_coo().unwrap()).unwrap();
    let atomic = ConjugateGradient::new(coo.layout()).variant("coo-atomic");
    refused(&atomic, ErrorKind::Unsupported, "varies from run to run");

    let solver = gpu.conjugate_gradient(&cg).unwrap();
    let vector = |n: usize| gpu.alloc_zeroed::<f32>(n).unwrap();
    let solve = |a: &DeviceMatrix, b: usize, x: usize| {
        solver.solve(a, &vector(b), &vector(x), |_, _| ()).map(drop).unwrap_err()
    };
    let e = solve(&a, 11, 12);
    assert!(e.kind() == ErrorKind::Shape && e.to_string().contains("b has 11"), "{e}");
    let e = solve(&a, 12, 13);
    assert!(e.kind() == ErrorKind::Shape && e.to_string().contains("x has 13"), "{e}");
    let e = solve(&coo, 12, 12);
    assert!(e.kind() == ErrorKind::Shape && e.to_string().contains("stored as coo"), "{e}");
    let x = vector(12);
    let e = solver.solve(&a, &x, &x, |_, _| ()).map(drop).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Aliasing, "{e}");
}
