//! Random shapes, contents and options of every op against the reference, between guard words, on checked and unchecked
//! devices. A quarter of the cases runs on blocks of one buffer for each type that begin at any element.
//!
//! `TILEWORK_CASES` is the number of cases per op (200 in the complete run, 13 in the default one), `TILEWORK_SEED` the
//! seed (1). A failure is shrunk before it is reported; the report states both numbers, which reproduce it.

mod attention;
mod conv;
mod dense;
mod draw;
mod guarded;
mod long;
mod long_windows;
mod named;
mod primitives;
mod quantize;
mod soak;
mod sparse;

use crate::support::coverage::{all, cases, turn};
use crate::support::{Device, devices_of_every_way};
use draw::{Choices, Draw};
use guarded::{Case, Outcome};
use proptest::prelude::{Just, Strategy, any};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use std::cell::Cell;
use std::str::FromStr;
use std::sync::OnceLock;
use tilework::operations;
use tilework::program::Operation;

fn setting<T: FromStr>(name: &str, default: T) -> T {
    let Ok(text) = std::env::var(name) else { return default };
    text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number"))
}

/// The compared devices run every case, the others a quarter of them.
fn runs_on(device: &Device, spec: usize) -> bool {
    device.main || device.checks() || spec % 4 == 1
}

/// Whether each device flushes subnormal numbers to 0, which changes operands.
fn flushes() -> &'static [bool] {
    static FLUSHES: OnceLock<Vec<bool>> = OnceLock::new();
    let of = |device: &Device| {
        let [x, y] = [1e-39f32, 0.0].map(|x| device.gpu.upload(&[x]).unwrap());
        device.gpu.axpy(1.0, &x, &y).unwrap();
        y.read().unwrap() == [0.0]
    };
    FLUSHES.get_or_init(|| devices_of_every_way().iter().map(of).collect())
}

/// Draws cases of an op and runs them. Returns what is wrong.
fn check(info: &'static Operation) -> Option<String> {
    let op = info.name;
    let devices: Vec<Device> = devices_of_every_way().iter().map(Device::again).collect();
    if devices.is_empty() {
        return None;
    }
    let (cases, seed) = (setting("TILEWORK_CASES", cases(200) as u32), setting("TILEWORK_SEED", 1u64));
    // Kernels compile slowly, so options come from a few sets; shapes and contents do not.
    // In the default run one op in three has other options than the first ones.
    let place = operations().position(|other| other.name == op).unwrap_or(0);
    let specs = (cases as usize / 16).max(if all() { 5 } else { 1 + usize::from(turn(place, 3)) });
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes.iter_mut().skip(8).zip(op.bytes()).for_each(|(to, from)| *to = from);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 400, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let choices = proptest::array::uniform16(any::<u32>());
    let strategy = (0..specs, choices, any::<u64>().prop_flat_map(Just).no_shrink());
    let options = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let [ran, refused, in_blocks, bound] = [(); 4].map(|()| Cell::new(0u32));
    let result = TestRunner::new_with_rng(config, rng).run(&strategy, |(spec, choices, contents)| {
        let options = options.wrapping_add(spec as u64);
        let case = case(&mut Draw::new(op, options, spec, Choices(choices), contents), info);
        let mut first: Option<Outcome> = None;
        let flushed = case.has_subnormals();
        for (device, flushes) in devices.iter().zip(flushes()).filter(|(d, _)| runs_on(d, spec)) {
            if flushed && *flushes {
                refused.set(refused.get() + u32::from(device.main));
                continue;
            }
            let fail = |why: String| TestCaseError::fail(format!("{}: {}: {why}", device.label, case.what));
            let checked = device.checks();
            let blocks = if device.main && !checked && contents.is_multiple_of(4) {
                let outcome = case.run_in_blocks(&device.gpu).map_err(fail)?;
                let count = if outcome.is_some() { &in_blocks } else { &bound };
                count.set(count.get() + 1);
                outcome
            } else {
                None
            };
            let outcome = match blocks {
                Some(outcome) => Some(outcome),
                None => case.run(&device.gpu, checked).map_err(fail)?,
            };
            let Some(outcome) = outcome else {
                refused.set(refused.get() + u32::from(device.main));
                continue;
            };
            ran.set(ran.get() + u32::from(device.main));
            match &first {
                Some(first) if checked => {
                    if let Some(why) = first.differs(&outcome) {
                        return Err(fail(why));
                    }
                }
                Some(_) => {}
                None => first = Some(outcome),
            }
        }
        Ok(())
    });
    let by = format!("TILEWORK_SEED={seed} TILEWORK_CASES={cases}");
    println!(
        "{op}: {} cases ran, {} of them in blocks, and the device rejected {}, {by}",
        ran.get(),
        in_blocks.get(),
        refused.get()
    );
    match result {
        // Some variants bind an operand where it lies.
        Ok(()) if in_blocks.get() == 0 && bound.get() > 8 => Some(format!("{op}: no case ran in blocks, {by}")),
        Ok(()) if 8 * ran.get() >= refused.get() => None,
        Ok(()) => Some(format!("{op}: the device rejects nearly all cases, {by}")),
        Err(TestError::Abort(why)) => Some(format!("{op}: {why}, {by}")),
        Err(TestError::Fail(why, smallest)) => Some(format!("{op}: {why}\nof {smallest:?}, {by}")),
    }
}

/// Draws a case of an op.
type DrawnBy = fn(&mut Draw) -> Case;

/// Cases of ops with contents or options that no declaration states: leading dimensions, sparse formats, pages, windows
/// that fit, a count that is no length, codes that may differ by one.
const CASES: &[(&str, DrawnBy)] = &[
    ("gemm", dense::gemm),
    ("gemm-batched", dense::gemm_batched),
    ("gemv", dense::gemv),
    ("spmv", sparse::spmv),
    ("spmm", sparse::spmm),
    ("spconvert", sparse::spconvert),
    ("spinsert", sparse::spinsert),
    ("conv", conv::conv),
    ("conv-transpose", conv::conv_transpose),
    ("conv-backward-data", conv::conv_backward_data),
    ("conv-backward-weights", conv::conv_backward_weights),
    ("partition", primitives::partition),
    ("gather", primitives::gather),
    ("quantize", quantize::quantize),
    ("dequantize", quantize::dequantize),
    ("gemm-int8", quantize::gemm_int8),
    ("attention", attention::attention),
    ("attention-backward", attention::attention_backward),
    ("kv-append", attention::kv_append),
];

/// A case of an op: of the list above, or as the op is declared.
fn case(draw: &mut Draw, op: &'static Operation) -> Case {
    match CASES.iter().find(|(name, _)| *name == op.name) {
        Some((_, case)) => case(draw),
        None => named::case(draw, op),
    }
}

/// A test for each family.
macro_rules! families {
    ($($family:ident)*) => {$(
        #[test]
        fn $family() {
            let failures: Vec<_> = tilework::$family::OPS.iter().filter_map(check).collect();
            assert!(failures.is_empty(), "{}", failures.join("\n"));
        }
    )*};
}

mod families {
    use super::check;

    families! { elementwise primitives dense sparse conv quantize image nn attention }
}

#[test]
fn every_case_names_an_op() {
    let unknown = CASES.iter().find(|(name, _)| operations().all(|op| op.name != *name));
    assert!(unknown.is_none(), "{:?}", unknown.map(|(name, _)| name));
}
