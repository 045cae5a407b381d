//! Calls that wait without blocking give what the blocking ones give, on any executor.

use crate::support::by_name::matrix;
use crate::support::gpu;
use pollster::block_on;
use tilework::ErrorKind;
use tilework::HostArray;
use tilework::prelude::*;
use tilework::program::{Ask, Settings};
use tilework::sparse::{Outcome, Target};

#[test]
fn waiting_measuring_and_compiling_do_not_block() {
    let Some(gpu) = gpu() else { return };
    let sort = RadixSort::new(5001);
    block_on(gpu.warm_up_async([gpu.lower::<u32, _>(&sort).unwrap()])).unwrap();
    let keys: Vec<u32> = (0..5001).rev().collect();
    let (x, y) = (gpu.upload(&keys).unwrap(), gpu.alloc::<u32>(5001).unwrap());
    let plan = sort.plan::<u32>(gpu).unwrap();
    let measured = block_on(gpu.measure_async(2, |rec| plan.record(rec, &x, &y))).unwrap();
    assert_eq!(measured.seconds.len(), 2);
    block_on(gpu.wait_async()).unwrap();
    assert!(block_on(y.slice(..).unwrap().start_read().unwrap().wait_async()).unwrap().into_iter().eq(0..5001));
    let ceilings = block_on(gpu.ceilings_async()).unwrap();
    assert_eq!(gpu.ceilings().unwrap(), ceilings);
}

#[test]
fn results_by_name_do_not_block() {
    let Some(gpu) = gpu() else { return };
    let op = tilework::operations().find(|op| op.name == "select").unwrap();
    let settings = Settings::new(op);
    let x = HostArray::new(&[4], vec![3u32, 1, 4, 1]).unwrap();
    let flags = HostArray::new(&[4], vec![1u32, 0, 1, 0]).unwrap();
    let ready = gpu.ready(op.build(Ask::new(&settings).input(x).input(flags)).unwrap()).unwrap();
    let mut rec = gpu.recorder();
    ready.record(&mut rec).unwrap();
    rec.submit().unwrap();
    let waited = block_on(ready.results_async()).unwrap();
    assert_eq!(waited, ready.results().unwrap());
    assert_eq!(waited, [HostArray::new(&[2], vec![3u32, 4]).unwrap()]);
}

#[test]
fn solvers_and_conversions_do_not_block() {
    let Some(gpu) = gpu() else { return };
    let csr = matrix(65, 40);
    let there = gpu.upload_matrix(&csr).unwrap();
    for target in [Target::Hybrid { width: None }, Target::Sell { slice: 4, window: 16 }, Target::Csc] {
        let other = block_on(gpu.convert_matrix_async(&there, target)).unwrap();
        assert_eq!(other.layout(), gpu.convert_matrix(&there, target).unwrap().layout());
        assert_eq!(block_on(other.read_async()).unwrap(), other.read().unwrap(), "{target:?}");
    }
    assert_eq!(block_on(gpu.analyse_matrix_async(&there)).unwrap(), csr.analyse());
    let summed = block_on(gpu.sum_duplicates_async(&there)).unwrap();
    assert_eq!(block_on(summed.read_async()).unwrap().to_csr().unwrap(), csr);
    let transposed = block_on(gpu.transpose_matrix_async(summed)).unwrap();
    assert_eq!(transposed.read().unwrap().to_csr().unwrap(), csr.transposed().unwrap());

    let (row_ptrs, col_idxs) = ((0..=64).collect(), (0..64).collect());
    let diagonal = tilework::sparse::Csr { rows: 64, cols: 64, row_ptrs, col_idxs, values: vec![2.0; 64] };
    let (a, b) = (gpu.upload_matrix(&diagonal).unwrap(), gpu.upload(&[1.0f32; 64]).unwrap());
    let x = gpu.alloc_zeroed::<f32>(64).unwrap();
    let solver = gpu.conjugate_gradient(&ConjugateGradient::new(a.layout())).unwrap();
    let solution = block_on(solver.solve_async(&a, &b, &x, |_, _| ())).unwrap();
    assert_eq!(solution.outcome, Outcome::Converged);
    assert_eq!(x.read().unwrap(), [0.5; 64]);
    assert_eq!(block_on(solver.progress_async()).unwrap(), solver.progress().unwrap());
}

#[test]
fn waiting_for_a_lost_device_ends() {
    if gpu().is_none() {
        return;
    }
    let gpu = block_on(Gpu::request(GpuOptions::default())).unwrap();
    let x = gpu.upload(&[1.0f32; 300]).unwrap();
    gpu.device().destroy();
    assert_eq!(block_on(gpu.wait_async()).unwrap_err().kind(), ErrorKind::DeviceLost);
    assert_eq!(block_on(x.read_async()).unwrap_err().kind(), ErrorKind::DeviceLost);
    assert_eq!(block_on(gpu.ceilings_async()).unwrap_err().kind(), ErrorKind::DeviceLost);
    let none: [tilework::program::Program; 0] = [];
    assert_eq!(block_on(gpu.warm_up_async(none)).unwrap_err().kind(), ErrorKind::DeviceLost);
}
