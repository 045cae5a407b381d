//! Loops over all ops: declarations are consistent, every variant matches the reference, and no request by name panics.

use crate::support::by_name::{Numbers, call, cases, complaint, programs, wanted};
use crate::support::coverage::{self, sample, turn};
use crate::support::{Device, Random, devices, devices_of_every_way};
use std::collections::BTreeMap;
use tilework::program::{Ask, DeviceProfile, OpCall, Operation, Settings};
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
    for op in programs() {
        let name = op.name;
        assert!(!op.types.is_empty() && (op.matrix || op.inputs.is_empty() == op.example.shape.is_empty()), "{name}");
        let call = call(op, op.example.shape, op.types[0], "auto").unwrap();
        let program = call.lower(&profile).unwrap();
        assert_eq!((program.op, program.operands.len()), (name, call.operands.len()), "{name}");
        let declared = call.declared_outputs();
        assert!(declared.iter().all(Option::is_some), "{name}: {declared:?} of {:?}", op.outputs);
        assert!(op.matrix || call.outputs().count() == declared.len(), "{name}");
        for (role, operand) in call.operands.iter().zip(&program.operands) {
            if let Some(array) = role.input() {
                let (len, dtype) = (array.len(), array.dtype());
                assert_eq!((len, dtype), (operand.len, operand.dtype), "{name}: {}", operand.name);
            }
        }
        let settings = Settings::new(op);
        let kind = |ask: Ask<'_>| op.build(ask).unwrap_err().kind();
        let one = || HostArray::zeros(&[1], DType::F32).unwrap();
        if !op.inputs.is_empty() {
            assert_eq!(kind(Ask::new(&settings)), ErrorKind::InvalidArgument, "{name} without inputs");
        }
        let many = (0..=op.inputs.len()).map(|_| one());
        assert_eq!(kind(Ask::new(&settings).inputs(many)), ErrorKind::InvalidArgument, "{name} with too many inputs");
        assert!(Settings::new(op).text("no-such-option", "1").is_err(), "{name}");
    }
}

/// Runs a call and returns what is wrong with its results. `None` if the op, the device or the variant rejects it.
fn wrong(op: &Operation, call: OpCall, run: impl FnOnce(OpCall) -> tilework::Result<Vec<HostArray>>) -> Option<String> {
    match wanted(op, &call) {
        Err(why) => Some(why),
        Ok(wanted) => complaint(&wanted?, run(call)),
    }
}

fn run_on(gpu: &Gpu, call: OpCall) -> tilework::Result<Vec<HostArray>> {
    let ready = gpu.ready(call)?;
    let mut rec = gpu.recorder();
    ready.record(&mut rec)?;
    rec.submit()?;
    ready.results()
}

#[test]
fn every_variant_matches_reference_by_name() {
    // Types and shapes on the main device; the example also with runtime checks.
    let main = |d: &Device| d.main && coverage::all();
    let all = devices_of_every_way().iter().filter(|d| d.main || d.checks());
    let mut failures = Vec::new();
    for (device, case) in all.flat_map(|d| programs().flat_map(|op| cases(op, main(d))).map(move |case| (d, case))) {
        match case.call() {
            // The op or this variant rejects it, for which there is no reference.
            Ok(call) if call.lower(device.gpu.profile()).is_err() => {
                assert!(!case.example || case.variant != "auto", "{case}");
            }
            Ok(call) => {
                let why = wrong(case.op, call, |call| run_on(&device.gpu, call));
                failures.extend(why.map(|why| format!("{case} on {}: {why}", device.label)));
            }
            Err(e) => assert!(!case.example, "{case}: {e}"),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The op on `n` elements, or rows of three, of which the device says that there are `length`.
fn counted_call(
    op: &'static Operation, [n, length]: [usize; 2], (option, variant): (Option<(&str, &str)>, &str), dtype: DType,
) -> tilework::Result<OpCall> {
    let mut settings = Settings::new(op);
    let of_example = op.example.options.iter().filter(|(name, _)| option.is_none_or(|(own, _)| own != *name));
    for (name, value) in of_example.copied().chain(option) {
        settings.text(name, value)?;
    }
    settings.with_array("length", HostArray::new(&[1], vec![length.min(u32::MAX as usize) as u32])?)?;
    let of = |shape: &[usize]| {
        op.build(Ask::new(&settings).variant(variant).supplied_by(&mut Numbers::new(op, shape, dtype)))
    };
    of(&[n]).or_else(|_| of(&[n, 3]))
}

#[test]
fn every_variant_takes_a_length_from_the_device() {
    let mut failures = Vec::new();
    let with_length = || programs().filter(|op| op.options.iter().any(|option| option.name == "length"));
    for device in devices() {
        let lengths: &[usize] = if device.main { sample(&[70_001, 300, 5], 2) } else { &[4097] };
        for op in with_length() {
            let has = |name: &str| op.options.iter().any(|option| option.name == name);
            // More than one workgroup puts in order, more bins than fit one, and a second operator.
            let options: &[_] = match ["k", "bins", "op"].into_iter().find(|name| has(name)) {
                Some("k") => &[Some(("k", "3")), Some(("k", "100")), Some(("k", "1500"))],
                Some("bins") => &[None, Some(("bins", "100")), Some(("bins", "70000"))],
                Some("op") => &[None, Some(("op", "max"))],
                _ => &[None],
            };
            let variants = std::iter::once("auto").chain((op.variants)().iter().map(|v| v.name));
            // In the default run `auto`, and every sixth variant.
            for (place, variant) in variants.enumerate().filter(|(place, _)| turn(*place, 6)) {
                let mut ran = 0;
                // Each option compiles other kernels: in the default run a variant meets one.
                let options = if coverage::all() { options } else { &options[place % options.len()..][..1] };
                let lengths = if place == 0 { lengths } else { sample(lengths, 1) };
                let runs = options.iter().flat_map(|option| lengths.iter().enumerate().map(move |n| (option, n)));
                for (&option, (i, &n)) in runs {
                    for &length in sample(&[n / 2, u32::MAX as usize, 0, 1, n - 1, n, n + 1], 3) {
                        // Each type compiles other kernels: a variant meets one, in the complete run one a length.
                        let first = place + if coverage::all() { i } else { 0 };
                        let mut types = (0..op.types.len()).map(|t| op.types[(first + t) % op.types.len()]);
                        // The op or this variant rejects the others.
                        let accepted = types.find_map(|dtype| {
                            let call = counted_call(op, [n, length], (option, variant), dtype).ok()?;
                            call.lower(device.gpu.profile()).is_ok().then_some((call, dtype))
                        });
                        let Some((call, dtype)) = accepted else { continue };
                        let case = format!("{} {option:?} by {variant}: {length} of {n}, {dtype}", op.name);
                        ran += 1;
                        let why = wrong(op, call, |call| run_on(&device.gpu, call));
                        failures.extend(why.map(|why| format!("{case} on {}: {why}", device.label)));
                    }
                }
                assert!(ran > 0 || variant != "auto", "{}: no request with a length is accepted", op.name);
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(with_length().count() >= 20);
}

/// Ops with CUDA kernels, on CUDA. Without a device they are only lowered.
#[cfg(feature = "cuda")]
#[test]
fn every_op_on_cuda_matches_reference() {
    use crate::support::by_name::shapes;
    use tilework::cuda::CudaProfile;
    let cuda = crate::support::cuda::cuda();
    let mut found = Vec::new();
    for op in programs() {
        for shape in shapes(op) {
            for &dtype in op.types {
                let Ok(call) = call(op, &shape, dtype, "auto") else { continue };
                match call.lower_on_cuda(&CudaProfile::h100()) {
                    Ok(program) => {
                        assert_eq!((program.op, program.operands.len()), (op.name, call.operands.len()));
                        found.push(op.name);
                    }
                    Err(e) => {
                        assert!(e.kind() == ErrorKind::Unsupported && e.to_string().starts_with(op.name), "{e}");
                        continue;
                    }
                }
                // Tensor cores round more than the references; the CUDA tests of these ops have bounds for that.
                let Some(cuda) = cuda.filter(|_| dtype != DType::F16) else { continue };
                let run = |call| {
                    let ready = cuda.ready(call)?;
                    ready.run(&cuda.stream()?)?;
                    ready.results()
                };
                if let Some(why) = wrong(op, call, run) {
                    panic!("{} of {shape:?}, {dtype}: {why}", op.name);
                }
            }
        }
    }
    found.dedup();
    assert_eq!(found.len(), 7, "{found:?}");
}

#[test]
fn every_op_has_a_reference() {
    let without: Vec<_> = programs()
        .filter(|op| {
            let call = call(op, op.example.shape, op.types[0], "auto").unwrap();
            reference::wanted(op, &call).unwrap().is_none()
        })
        .map(|op| op.name)
        .collect();
    assert!(without.is_empty(), "no reference: {without:?}");
}

/// A short version of the fuzz target `lower`, with the same requests in every run.
#[test]
fn requests_by_name_never_panic() {
    let profiles =
        [DeviceProfile::h100(), DeviceProfile::webgpu_defaults(), DeviceProfile::mesa(), DeviceProfile::swiftshader()];
    let mut random = Random::new(11);
    let mut lowered: BTreeMap<&str, u32> = BTreeMap::new();
    for round in 0..120 {
        for op in programs() {
            let profile = &profiles[round % profiles.len()];
            *lowered.entry(op.name).or_default() += u32::from(forms::lowered(&mut random, op, profile).is_ok());
        }
    }
    let never: Vec<_> = lowered.iter().filter(|(_, n)| **n == 0).map(|(name, _)| *name).collect();
    assert!(never.is_empty(), "every request fails: {never:?}");
}
