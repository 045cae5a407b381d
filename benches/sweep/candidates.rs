//! The ways to compute a shape that the catalogue offers, and their times.

use super::catalogue;
use super::shapes::{Drawn, Kind, dtype_of};
use super::support::{centred, random};
use half::f16;
use std::collections::HashSet;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tilework::gpu::RawSlice;
use tilework::prelude::*;
use tilework::program::{Ask, Choice, DeviceProfile, Op, OpCall, Operation, Program};
use tilework::{AnyBuffer, DType, HostArray, MatrixJob, Result};

/// One way and its time.
pub(crate) struct Measured {
    pub(crate) name: String,
    pub(crate) why: String,
    pub(crate) seconds: f64,
    /// A median of [`RUNS`] runs, not a rough time.
    pub(crate) accurate: bool,
}

/// Runs of an accurate measurement, and the most ways that get one beside the automatic one.
const RUNS: usize = 15;
const FINALISTS: usize = 6;

/// Rounds of rough measurements, and the factor over the best time from which a way takes no further part.
const ROUNDS: usize = 3;
const HOPELESS: f64 = 1.5;

/// A way that is not measured yet.
struct Candidate {
    name: String,
    program: Program,
    call: Rc<OpCall>,
}

/// Slices of k that are tried where an op has them.
const SLICES: [u32; 6] = [2, 3, 4, 8, 16, 32];

/// Measures the automatic choice, which comes first, and all other ways that differ from it, until `left` is over.
pub(crate) fn measure(
    gpu: &Gpu, kind: &Kind, drawn: &Drawn, most_seconds: f64, tiles: bool, left: Duration,
) -> Result<Vec<Measured>> {
    let start = Instant::now();
    let Some(op) = tilework::operations().find(|op| op.name == kind.op) else { return Ok(Vec::new()) };
    let all = candidates(gpu, op, drawn, tiles)?;
    gpu.warm_up(all.iter().map(|candidate| &candidate.program))?;
    // Ways on one kind of operands share them; a sparse matrix in another format has its own.
    let mut operands: Vec<(String, Vec<Operands>)> = Vec::new();
    let mut ready = Vec::new();
    for Candidate { name, program, call } in all {
        let kind = format!("{:?}", program.operands);
        let at = operands.iter().position(|(known, _)| *known == kind);
        let at = match at {
            Some(at) => at,
            None => {
                operands.push((kind, contents(gpu, &call, &program)?));
                operands.len() - 1
            }
        };
        let why = program.decision.why.clone();
        ready.push((
            Measured { name, why, seconds: f64::INFINITY, accurate: true },
            // SAFETY: an op lowered it, for the device's profile with other choices.
            unsafe { gpu.prepare_unchecked(program)? },
            at,
        ));
    }
    let raw: Vec<Vec<_>> = operands.iter().map(|(_, all)| all.iter().map(Operands::raw).collect()).collect();
    let record = |rec: &mut Recorder, i: usize| {
        let (_, executable, at) = &ready[i];
        executable.record(rec, &raw[*at])
    };
    let median = |i: usize| Ok::<_, tilework::Error>(gpu.measure(RUNS, |rec| record(rec, i))?.median());
    // Software drivers compile a kernel when it runs first.
    gpu.profile_work(|rec| (0..ready.len()).try_for_each(|i| record(rec, i)))?;
    let auto = median(0)?;
    // Rough times: all ways one after the other in one submission, behind work that keeps the clocks up. The kernels'
    // own times, since timestamps between them take longer than the gaps of a run.
    let again = (0.02 / auto.max(1e-6)).clamp(1.0, 200.0) as usize;
    let mut rough = vec![f64::INFINITY; ready.len()];
    let mut kept: Vec<usize> = (0..ready.len()).collect();
    for _ in 0..ROUNDS {
        let profile = gpu.profile_work(|rec| {
            (0..again).try_for_each(|_| record(rec, 0))?;
            kept.iter().try_for_each(|i| record(rec, *i))
        })?;
        for (op, i) in profile.ops.iter().rev().zip(kept.iter().rev()) {
            let kernels: f64 = op.dispatches.iter().filter_map(|d| d.seconds).sum();
            rough[*i] = rough[*i].min(kernels);
        }
        let best = rough.iter().copied().fold(f64::INFINITY, f64::min);
        kept.retain(|i| rough[*i] < HOPELESS * best && rough[*i] < most_seconds);
    }
    kept.retain(|i| *i > 0);
    kept.sort_by(|i, j| rough[*i].total_cmp(&rough[*j]));
    let mut accurate = vec![None; ready.len()];
    accurate[0] = Some(auto);
    // The automatic one again: as the others, after work that keeps the clocks up.
    for i in [0].into_iter().chain(kept.into_iter().take(FINALISTS)) {
        if start.elapsed() < left {
            accurate[i] = Some(median(i)?);
        }
    }
    let measured = ready.into_iter().zip(rough).zip(accurate).map(|(((measured, _, _), rough), accurate)| Measured {
        seconds: accurate.unwrap_or(rough),
        accurate: accurate.is_some(),
        ..measured
    });
    Ok(measured.collect())
}

/// The op on arrays without contents, or on the sparse matrix.
pub(crate) fn call(
    profile: &DeviceProfile, op: &'static Operation, drawn: &Drawn, variant: &str, more: Option<(&str, &str)>,
) -> Result<OpCall> {
    let mut settings = catalogue::settings(op, drawn)?;
    if let Some((name, value)) = more {
        settings.text(name, value)?;
    }
    if drawn.supplied {
        return catalogue::build(op, &settings, drawn, variant);
    }
    let arrays = drawn.inputs.iter().map(|(shape, dtype)| HostArray::unseen(shape, dtype_of(dtype)));
    let arrays = arrays.collect::<Result<Vec<_>>>()?;
    match drawn.csr() {
        Some(matrix) => {
            MatrixJob { matrix: &matrix, inputs: arrays, settings: &settings, variant, profile }.build(None)
        }
        None => op.build(Ask::new(&settings).variant(variant).inputs(arrays)),
    }
}

/// All ways whose dispatches differ, the automatic one first. What the device or the op refuses is left out.
fn candidates(gpu: &Gpu, op: &'static Operation, drawn: &Drawn, tiles: bool) -> Result<Vec<Candidate>> {
    let profile = gpu.profile();
    let mut all = Vec::new();
    let mut seen = HashSet::new();
    let mut add = |name: String, program: Program, call: &Rc<OpCall>| {
        let kernels: Vec<_> = program.kernels.iter().map(|k| (k.entry, format!("{:?}", k.spec))).collect();
        let new = seen.insert(format!("{kernels:?} {:?} {:?}", program.dispatches, program.operands));
        if new && !program.dispatches.is_empty() {
            all.push(Candidate { name, program, call: Rc::clone(call) });
        }
    };
    let auto = Rc::new(call(profile, op, drawn, "auto", None)?);
    let program = auto.lower(profile)?;
    add(format!("auto: {}", program.variant()), program, &auto);
    for variant in (op.variants)().iter().filter(|v| v.requires.missing(profile).is_none()) {
        let Ok(plain) = call(profile, op, drawn, variant.name, None).map(Rc::new) else { continue };
        let Ok(program) = plain.lower(profile) else { continue };
        // Elements of f32 that are rounded are another op.
        if variant.requires.cooperative && program.operands[0].dtype == DType::F32 {
            continue;
        }
        add(variant.name.into(), program, &plain);
        if let (Some(gemm), "coop") = (plain.descriptor::<Gemm>(), variant.name) {
            for (packed, name) in [(true, "packed"), (false, "in place")] {
                add(format!("coop {name}"), Op::<f16>::lower(&gemm.clone().packed(packed), profile)?, &plain);
            }
        }
        // Of variants that share a table, the faster one has its tiles tried.
        if !tiles || op.name == "gemm" && ["register", "split-k-atomic"].contains(&variant.name) {
            continue;
        }
        let slices = op.option("slices").is_some() && ["split-k", "coop"].contains(&variant.name);
        let slices: &[u32] = if slices { &SLICES } else { &[] };
        let sliced = slices.iter().filter_map(|n| {
            let call = call(profile, op, drawn, variant.name, Some(("slices", n.to_string().as_str()))).ok()?;
            Some((format!(" in {n}"), Rc::new(call)))
        });
        let calls: Vec<_> = [(String::new(), plain)].into_iter().chain(sliced).collect();
        for (name, call) in &calls[1..] {
            if let Ok(program) = call.lower(profile) {
                add(format!("{}{name}", variant.name), program, call);
            }
        }
        for row in (op.tiles)(variant.name, profile) {
            let mut choosy = profile.clone();
            let choice = Choice { row: Some(row.clone()), ..Choice::variant(variant.name, "tried") };
            choosy.choices.forced.insert(op.name.into(), choice);
            for (name, call) in &calls {
                if let Ok(program) = call.lower(&choosy) {
                    add(format!("{} {row}{name}", variant.name), program, call);
                }
            }
        }
    }
    Ok(all)
}

/// A buffer with contents.
enum Operands {
    Given(AnyBuffer),
    Single(Buffer<f32>),
    Half(Buffer<f16>),
    Words(Buffer<u32>),
    Bytes(Buffer<u8>),
    SignedBytes(Buffer<i8>),
    SignedWords(Buffer<i32>),
}

impl Operands {
    fn raw(&self) -> RawSlice<'_> {
        match self {
            Self::Given(buffer) => buffer.raw(),
            Self::Single(buffer) => Slice::from(buffer).untyped(),
            Self::Half(buffer) => Slice::from(buffer).untyped(),
            Self::Words(buffer) => Slice::from(buffer).untyped(),
            Self::Bytes(buffer) => Slice::from(buffer).untyped(),
            Self::SignedBytes(buffer) => Slice::from(buffer).untyped(),
            Self::SignedWords(buffer) => Slice::from(buffer).untyped(),
        }
    }
}

/// The operands: arrays that have contents, random numbers, or memory for results.
fn contents(gpu: &Gpu, call: &OpCall, program: &Program) -> Result<Vec<Operands>> {
    let each = call.operands.iter().zip(&program.operands).map(|(role, operand)| {
        let n = operand.len;
        Ok(match (role.input(), operand.dtype) {
            (Some(array), _) if array.data().is_seen() => Operands::Given(gpu.upload_data(array.data())?),
            (Some(_), DType::F32) => Operands::Single(random(gpu, n, centred)?),
            (Some(_), DType::F16) => Operands::Half(random(gpu, n, |bits| f16::from_f32(centred(bits)))?),
            (Some(_), DType::U32) => Operands::Words(random(gpu, n, |bits| bits)?),
            (Some(_), DType::I32) => Operands::SignedWords(random(gpu, n, |bits| bits as i32)?),
            (Some(_), DType::U8) => Operands::Bytes(random(gpu, n, |bits| bits as u8)?),
            (Some(_), DType::I8) => Operands::SignedBytes(random(gpu, n, |bits| bits as i8)?),
            _ => Operands::Given(gpu.alloc_data(operand.dtype, n)?),
        })
    });
    each.collect()
}
