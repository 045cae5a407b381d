use super::*;
use crate::{Gpu, Slice};

/// A dispatch that is folded has more workgroups than it needs: they must change nothing.
#[test]
fn surplus_workgroups_change_nothing() {
    let Some(gpu) = (!Gpu::adapters().is_empty()).then(|| Gpu::new().unwrap()) else { return };
    let n = 70_000;
    let vector = |k: usize| -> Vec<f32> { (0..n).map(|i| ((i * k) % 17) as f32).collect() };
    let run = |surplus: u32| {
        let mut program = update(n, gpu.profile()).unwrap();
        for dispatch in &mut program.dispatches {
            let Grid::Direct(grid) = &mut dispatch.grid else { panic!("a direct dispatch") };
            grid[0] += surplus;
        }
        let ready = gpu.prepare_lowered(program).unwrap();
        let mut words = vec![0; state::WORDS];
        words[..3].copy_from_slice(&state::with_lengths(0.5, 2.0));
        let state = gpu.upload(&words).unwrap();
        let vectors = [3, 5, 7, 11, 13].map(|k| gpu.upload(&vector(k)).unwrap());
        let operands: Vec<_> = std::iter::once(Slice::from(&state).untyped())
            .chain(vectors.iter().map(|v| Slice::from(v).untyped()))
            .collect();
        let mut rec = gpu.recorder();
        ready.record(&mut rec, &operands).unwrap();
        rec.submit().unwrap();
        vectors.map(|v| v.read().unwrap())
    };
    assert_eq!(run(0), run(300));
}

/// The first lengths, those of a step after it, and each end.
#[test]
fn a_step_finds_lengths_or_ends() {
    let Some(gpu) = (!Gpu::adapters().is_empty()).then(|| Gpu::new().unwrap()) else { return };
    let ready = gpu.prepare_lowered(step(1, gpu.profile()).unwrap()).unwrap();
    let steps = |left: u32, sums: &[[f32; 2]]| {
        let mut words = vec![0; state::WORDS];
        words[..8].copy_from_slice(&state::first(0.5, left));
        let there = gpu.upload(&words).unwrap();
        for sums in sums {
            let partials = gpu.upload(sums).unwrap();
            let mut rec = gpu.recorder();
            let operands = [Slice::from(&partials).untyped(), Slice::from(&there).untyped()];
            ready.record(&mut rec, &operands).unwrap();
            rec.submit().unwrap();
        }
        there.read().unwrap()
    };
    let number = |words: &[u32], at: usize| f32::from_bits(words[at]);
    let first = steps(3, &[[4.0, 8.0]]);
    assert_eq!((first[state::STATUS], first[state::COUNT]), (state::GOING, 1));
    assert_eq!([1, 2, state::HISTORY].map(|at| number(&first, at)), [0.5, 0.0, 4.0]);
    // beta = 2 / 4, and alpha = 2 / (6 - beta 2 / 0.5).
    let second = steps(3, &[[4.0, 8.0], [2.0, 6.0]]);
    assert_eq!([1, 2, state::HISTORY + 1].map(|at| number(&second, at)), [0.5, 0.5, 2.0]);
    for (left, sums, end) in [
        (3, [0.5, 1.0], state::CONVERGED),
        (0, [1.0, 1.0], state::LIMIT),
        (3, [1.0, -1.0], state::NOT_POSITIVE),
        (3, [f32::NAN, 1.0], state::NOT_FINITE),
        (3, [1.0, f32::INFINITY], state::NOT_FINITE),
    ] {
        // What follows changes nothing.
        let ended = steps(left, &[sums, [7.0, 7.0]]);
        assert_eq!((ended[state::STATUS], ended[state::COUNT]), (end, 1), "{sums:?}");
    }
}
