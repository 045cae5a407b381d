//! PageRank against the reference.

use super::spmv::{every_format, matrix};
use crate::support::{devices, gpu};
use tilework::prelude::*;
use tilework::reference;
use tilework::sparse::{Csr, Outcome, PageRank};

/// Weighted links; every fifth node has none.
fn links(n: usize) -> Csr {
    let mut csr = matrix(n, n, |row, random| {
        let len = if row % 5 == 3 { 0 } else { 1 + random.next() as usize % 9 };
        (0..len).map(|_| (random.next() % n as u64).min(random.next() % n as u64) as usize).collect()
    });
    csr.values.iter_mut().for_each(|value| *value = value.abs());
    csr
}

#[test]
fn ranks_match_reference_in_every_format() {
    let n = 500;
    let t = links(n).transitions().unwrap();
    let mut start = vec![0.0; n];
    (start[7], start[400]) = (0.25, 0.75);
    for device in devices() {
        let gpu = &device.gpu;
        for personal in [None, Some(&start)] {
            let want = reference::page_rank(&t, 0.9, personal.map(Vec::as_slice), 300).unwrap();
            for host in every_format(&t).into_iter().take(if device.main { 10 } else { 1 }) {
                let a = gpu.upload_matrix(&host).unwrap();
                let rank = PageRank::new(a.layout()).damping(0.9).when(personal.is_some(), |op| op.personalised());
                let (x, on_device) = (gpu.alloc::<f32>(n).unwrap(), gpu.upload(&start).unwrap());
                let begin = personal.map(|_| Slice::from(&on_device));
                let solver = gpu.page_rank(&rank).unwrap();
                let solution = solver.run(&a, begin, &x, |_, _| ()).unwrap();
                let what = format!("{}: {:?}: {solution}", device.label, a.layout().format);
                assert_eq!(solution.outcome, Outcome::Converged, "{what}");
                let x = x.read().unwrap();
                let sum: f64 = x.iter().map(|&x| f64::from(x)).sum();
                let apart: f64 = x.iter().zip(&want).map(|(&x, want)| (f64::from(x) - want).abs()).sum();
                // After a step this small, the distance to the limit is at most d / (1 - d) times the step.
                assert!(apart < 9e-6 + 2e-6 && (sum - 1.0).abs() < 1e-5, "{what}: {apart} {sum}");
            }
        }
    }
}

#[test]
fn graphs_without_links_rank_all_nodes_equally() {
    let Some(gpu) = gpu() else { return };
    for n in [0, 1, 40] {
        let t = gpu.upload_matrix(&matrix(n, n, |_, _| vec![])).unwrap();
        let x = gpu.alloc::<f32>(n).unwrap();
        let solution = gpu.page_rank(&PageRank::new(t.layout())).unwrap().run(&t, None, &x, |_, _| ()).unwrap();
        assert_eq!(solution.outcome, Outcome::Converged);
        assert!(x.read().unwrap().iter().all(|x| (x * n as f32 - 1.0).abs() < 1e-6));
    }
}

#[test]
fn rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let t = gpu.upload_matrix(&links(20).transitions().unwrap()).unwrap();
    let rank = PageRank::new(t.layout());
    for damping in [-0.1, 1.1, f32::NAN] {
        let e = gpu.page_rank(&rank.clone().damping(damping)).map(drop).unwrap_err();
        assert!(e.to_string().contains("the damping is"), "{e}");
    }
    let (x, start) = (gpu.alloc::<f32>(20).unwrap(), gpu.upload(&[0.05f32; 20]).unwrap());
    let run = |rank: &PageRank, start| {
        gpu.page_rank(rank).unwrap().run(&t, start, &x, |_, _| ()).map(drop).unwrap_err().to_string()
    };
    assert!(run(&rank, Some(Slice::from(&start))).contains("not planned"));
    assert!(run(&rank.clone().personalised(), None).contains("is missing"));
    let mut broken = links(20).transitions().unwrap();
    broken.values[3] = f32::NAN;
    let a = gpu.upload_matrix(&broken).unwrap();
    let solution = gpu.page_rank(&rank).unwrap().run(&a, None, &x, |_, _| ()).unwrap();
    assert_eq!(solution.outcome, Outcome::NotFinite);
}
