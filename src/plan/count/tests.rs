use super::*;
use crate::program::{DeviceProfile, Op};
use crate::{Gemm, Reduce, Sum, Transpose};

/// The facts of a program on zeros, by name.
fn on_zeros(program: &Program) -> impl Fn(&str) -> f64 {
    let mut report = Report {
        op: program.op,
        adapter: String::new(),
        decision: program.decision.clone(),
        cost: program.cost,
        requested: None,
        scratch: 0,
        dispatches: Vec::new(),
        determinism: program.determinism,
        ceilings: None,
        operands: Vec::new(),
        kernels: Vec::new(),
        multiprocessor: crate::analysis::Multiprocessor::default(),
        facts: Vec::new(),
    };
    let operands = program.operands.iter().map(|o| vec![0; o.bytes() as usize]).collect();
    report.count(program, operands);
    move |name| report.facts.iter().find(|fact| fact.name == name).map_or(f64::NAN, |fact| fact.value)
}

#[test]
fn counts_are_those_of_the_formulas() {
    let profile = DeviceProfile::h100();
    let tiled = Op::<f32>::lower(&Gemm::new(32, 32, 32).variant("tiled"), &profile).unwrap();
    let of = on_zeros(&tiled);
    // Both loads coalesce: two tiles of 16 x 16 floats for each of 2 x 2 x 2 steps, then C.
    assert_eq!(of("coalescing"), 100.0);
    assert_eq!(of("diverging"), 0.0);
    assert!(of("uses") >= 16.0, "{}", of("uses"));
    let naive = Op::<f32>::lower(&Transpose::new(64, 64).variant("naive"), &profile).unwrap();
    // A read uses 4 of 32 bytes, a write all of them.
    let (bytes, coalescing) = (on_zeros(&naive)("bytes"), on_zeros(&naive)("coalescing"));
    assert_eq!(bytes, 2.0 * 4.0 * 4096.0);
    assert!((coalescing - 100.0 * 2.0 / 9.0).abs() < 1.0, "{coalescing}");
    let diverging =
        |variant| on_zeros(&Op::<f32>::lower(&Reduce::new(Sum, 4096).variant(variant), &profile).unwrap())("diverging");
    assert!(diverging("interleaved") > diverging("sequential"));
}

#[test]
fn large_programs_run_a_sample_and_huge_ones_do_not_run() {
    let profile = DeviceProfile::h100();
    let large = Op::<f32>::lower(&Transpose::new(1024, 1024).variant("naive"), &profile).unwrap();
    let of = on_zeros(&large);
    assert!(of("bytes") > 0.0 && of("bytes") < 8.0 * 1024.0 * 1024.0, "{}", of("bytes"));
    let huge = Op::<f32>::lower(&Transpose::new(4096, 4096), &profile).unwrap();
    assert_eq!(on_zeros(&huge)("counted"), 0.0);
}
