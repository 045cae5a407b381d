//! Power iteration against known eigenvalues and the reference.

use super::conjugate_gradient::laplacian;
use super::spmv::{every_format, matrix};
use crate::support::{Random, devices, gpu};
use tilework::prelude::*;
use tilework::program::Settings;
use tilework::reference;
use tilework::sparse::{Csr, Outcome, PowerIteration, Solution};
use tilework::{Driven, HostArray, MatrixJob};

fn run(gpu: &Gpu, a: &DeviceMatrix, power: &PowerIteration, x: &[f32]) -> (f32, Solution, Vec<f32>) {
    let x = gpu.upload(x).unwrap();
    let mut heard = Vec::new();
    let solver = gpu.power_iteration(power).unwrap();
    let (value, solution) = solver.run(a, &x, |_, residual| heard.push(residual)).unwrap();
    assert_eq!(heard, solution.history);
    (value, solution, x.read().unwrap())
}

/// Not negative, so that one eigenvalue outweighs the others.
fn positive(n: usize) -> Csr {
    let mut csr = matrix(n, n, |row, random| {
        let mut cols = vec![row, (row + 1) % n];
        cols.extend((0..row % 5).map(|_| random.next() as usize % n));
        cols
    });
    csr.values.iter_mut().for_each(|value| *value = value.abs());
    csr
}

#[test]
fn largest_eigenvalue_is_found_in_every_format() {
    let csr = positive(300);
    let x = vec![1.0; 300];
    let (want, vector) = reference::power_iteration(&csr, &x, 2000).unwrap();
    for device in devices() {
        for host in every_format(&csr).into_iter().take(if device.main { 10 } else { 1 }) {
            let a = device.gpu.upload_matrix(&host).unwrap();
            let (value, solution, x) = run(&device.gpu, &a, &PowerIteration::new(a.layout()), &x);
            let what = format!("{}: {:?}: {value} {want} {solution}", device.label, a.layout().format);
            assert!(solution.outcome == Outcome::Converged && solution.residual <= 1e-5, "{what}");
            assert!((f64::from(value) / want - 1.0).abs() < 1e-4, "{what}");
            let norm: f64 = x.iter().map(|&x| f64::from(x).powi(2)).sum();
            assert!((norm - 1.0).abs() < 1e-5, "{what}: {norm}");
            let apart: f64 = x.iter().zip(&vector).map(|(&x, v)| (f64::from(x) - v).powi(2)).sum();
            assert!(apart.sqrt() < 1e-2, "{what}: {apart}");
        }
    }
}

#[test]
fn negative_and_known_eigenvalues_are_found() {
    let Some(gpu) = gpu() else { return };
    // Of the 1-D Laplacian of n points: 2 + 2 cos(pi / (n + 1)).
    let mut csr = laplacian(&[9]);
    let want = 2.0 + 2.0 * (std::f64::consts::PI / 10.0).cos();
    for sign in [1.0, -1.0] {
        csr.values.iter_mut().for_each(|value| *value *= sign);
        let a = gpu.upload_matrix(&csr).unwrap();
        let start = Random::new(1).elements::<f32>(9);
        let (value, solution, _) = run(gpu, &a, &PowerIteration::new(a.layout()).check_every(3), &start);
        assert!((f64::from(value.abs()) - want).abs() < 1e-4, "{value} {want} {solution}");
        assert_eq!(value < 0.0, sign < 0.0);
    }
}

#[test]
fn vanishing_and_non_finite_vectors_are_reported() {
    let Some(gpu) = gpu() else { return };
    let csr = laplacian(&[6]);
    let a = gpu.upload_matrix(&csr).unwrap();
    let power = PowerIteration::new(a.layout()).iterations(40);
    assert_eq!(run(gpu, &a, &power, &[0.0; 6]).1.outcome, Outcome::Vanished);
    assert_eq!(run(gpu, &a, &power, &[f32::NAN; 6]).1.outcome, Outcome::NotFinite);
    let limited = run(gpu, &a, &power.clone().tolerance(0.0).iterations(3), &[1.0; 6]).1;
    assert_eq!((limited.outcome, limited.iterations, limited.history.len()), (Outcome::Limit, 3, 3));
    // Two eigenvalues of one magnitude.
    let (row_ptrs, col_idxs, values) = (vec![0, 1, 2], vec![1, 0], vec![1.0, 1.0]);
    let swap = gpu.upload_matrix(&Csr { rows: 2, cols: 2, row_ptrs, col_idxs, values }).unwrap();
    let power = PowerIteration::new(swap.layout()).iterations(40);
    assert_eq!(run(gpu, &swap, &power, &[1.0, 0.5]).1.outcome, Outcome::Limit);
    let e = gpu.power_iteration(&power.iterations(0)).map(drop).unwrap_err();
    assert!(e.to_string().contains("power-iteration: 0 iterations"), "{e}");
}

#[test]
fn outputs_by_name_are_those_declared() {
    let Some(gpu) = gpu() else { return };
    let mut matrix = laplacian(&[6]);
    matrix.values.iter_mut().for_each(|value| *value = value.abs());
    for op in tilework::operations().filter(|op| op.solver) {
        let settings = &Settings::new(op);
        let one = HostArray::new(&[6], vec![1.0f32; 6]).unwrap();
        let inputs = op.inputs.iter().filter(|input| !input.optional).map(|_| one.clone()).collect();
        let job = MatrixJob { matrix: &matrix, inputs, settings, variant: "auto", profile: gpu.profile() };
        let Some(Driven::Vector(outputs, _)) = gpu.drive(&job, &mut |_, _| ()).unwrap() else {
            panic!("{}: no vector", op.name);
        };
        let shapes: Vec<_> = outputs.iter().map(|output| output.shape().len()).collect();
        let declared = op.outputs.iter().map(|(_, shape)| usize::from(*shape != "()"));
        assert!(declared.eq(shapes), "{}", op.name);
    }
}
