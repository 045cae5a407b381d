//! Loops over all ops: declarations are consistent, every variant matches the reference, and no request by name panics.

use crate::support::by_name::{cases, complaint, form, formed, shapes, wanted};
use crate::support::{Random, coverage, devices};
use std::collections::BTreeMap;
use tilework::program::{Ask, DeviceProfile, Form, Operation, Settings};
use tilework::{DType, ErrorKind, Gpu, HostArray, reference};

#[path = "fuzz/fuzz_targets/forms.rs"]
mod forms;

impl forms::Source for Random {
    fn byte(&mut self) -> u8 {
        (self.next() >> 40) as u8
    }
}

#[test]
fn declarations_of_ops_are_consistent() {
    let profile = DeviceProfile::h100();
    for op in formed() {
        let name = op.name;
        assert!(
            !op.types.is_empty() && (op.matrix || op.inputs.is_empty() == op.example.shape.is_empty()),
            "{name}"
        );
        let form = form(op, op.example.shape, op.types[0], "auto").unwrap();
        let program = form.lower(&profile).unwrap();
        assert_eq!((program.op, program.operands.len()), (name, form.operands.len()), "{name}");
        let declared = form.declared_outputs();
        assert!(declared.iter().all(Option::is_some), "{name}: {declared:?} of {:?}", op.outputs);
        assert!(op.matrix || form.outputs().count() == declared.len(), "{name}");
        for (role, operand) in form.operands.iter().zip(&program.operands) {
            if let Some(array) = role.input() {
                let (len, dtype) = (array.len(), array.dtype());
                assert_eq!((len, dtype), (operand.len, operand.dtype), "{name}: {}", operand.name);
            }
        }
        let settings = Settings::new(op);
        let kind = |ask: Ask<'_>| op.form(ask).unwrap_err().kind();
        let one = || HostArray::zeros(&[1], DType::F32).unwrap();
        if !op.inputs.is_empty() {
            assert_eq!(kind(Ask::new(&settings)), ErrorKind::InvalidArgument, "{name} without inputs");
        }
        let many = (0..=op.inputs.len()).map(|_| one());
        assert_eq!(
            kind(Ask::new(&settings).inputs(many)),
            ErrorKind::InvalidArgument,
            "{name} with too many inputs"
        );
        assert!(Settings::new(op).text("no-such-option", "1").is_err(), "{name}");
    }
}

/// Runs a form and returns what is wrong with its results. `None` if the op, the device or the variant rejects it.
fn wrong(
    op: &Operation,
    form: Form,
    run: impl FnOnce(Form) -> tilework::Result<Vec<HostArray>>,
) -> Option<String> {
    match wanted(op, &form) {
        Err(why) => Some(why),
        Ok(wanted) => complaint(&wanted?, run(form)),
    }
}

fn run_on(gpu: &Gpu, form: Form) -> tilework::Result<Vec<HostArray>> {
    let ready = gpu.ready(form)?;
    let mut rec = gpu.recorder();
    ready.record(&mut rec)?;
    rec.submit()?;
    ready.results()
}

#[test]
fn every_variant_matches_reference_by_name() {
    let Some(device) = devices().first() else { return };
    let mut failures = Vec::new();
    for case in formed().flat_map(|op| cases(op, coverage::all())) {
        match case.form() {
            // The op or this variant rejects it, for which there is no reference.
            Ok(form) if form.lower(device.gpu.profile()).is_err() => {
                assert!(!case.example || case.variant != "auto", "{case}");
            }
            Ok(form) => {
                let why = wrong(case.op, form, |form| run_on(&device.gpu, form));
                failures.extend(why.map(|why| format!("{case}: {why}")));
            }
            Err(e) => assert!(!case.example, "{case}: {e}"),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Ops with CUDA kernels, on CUDA. Without a device they are only lowered.
#[cfg(feature = "cuda")]
#[test]
fn every_op_on_cuda_matches_reference() {
    use tilework::cuda::CudaProfile;
    let cuda = crate::support::cuda::cuda();
    let mut found = Vec::new();
    for op in formed() {
        for shape in shapes(op) {
            for &dtype in op.types {
                let Ok(form) = form(op, &shape, dtype, "auto") else { continue };
                match form.lower_on_cuda(&CudaProfile::h100()) {
                    Ok(program) => {
                        assert_eq!((program.op, program.operands.len()), (op.name, form.operands.len()));
                        found.push(op.name);
                    }
                    Err(e) => {
                        assert!(
                            e.kind() == ErrorKind::Unsupported && e.to_string().starts_with(op.name),
                            "{e}"
                        );
                        continue;
                    }
                }
                // Tensor cores round more than the references; the CUDA tests of these ops have bounds for that.
                let Some(cuda) = cuda.filter(|_| dtype != DType::F16) else { continue };
                let run = |form| {
                    let ready = cuda.ready(form)?;
                    ready.run(&cuda.stream()?)?;
                    ready.results()
                };
                if let Some(why) = wrong(op, form, run) {
                    panic!("{} of {shape:?}, {dtype}: {why}", op.name);
                }
            }
        }
    }
    found.dedup();
    assert_eq!(found.len(), 6, "{found:?}");
}

#[test]
fn every_op_has_a_reference() {
    let without: Vec<_> = formed()
        .filter(|op| {
            let form = form(op, op.example.shape, op.types[0], "auto").unwrap();
            reference::wanted(op, &form).unwrap().is_none()
        })
        .map(|op| op.name)
        .collect();
    assert!(without.is_empty(), "no reference: {without:?}");
}

/// A short version of the fuzz target `lower`, with the same requests in every run.
#[test]
fn requests_by_name_never_panic() {
    let profiles = [
        DeviceProfile::h100(),
        DeviceProfile::webgpu_defaults(),
        DeviceProfile::mesa(),
        DeviceProfile::swiftshader(),
    ];
    let mut random = Random::new(11);
    let mut lowered: BTreeMap<&str, u32> = BTreeMap::new();
    for round in 0..300 {
        for op in formed() {
            let profile = &profiles[round % profiles.len()];
            *lowered.entry(op.name).or_default() +=
                u32::from(forms::lowered(&mut random, op, profile).is_ok());
        }
    }
    let never: Vec<_> = lowered.iter().filter(|(_, n)| **n == 0).map(|(name, _)| *name).collect();
    assert!(never.is_empty(), "every request fails: {never:?}");
}
