//! Random shapes, contents and options of every op against the reference, between guard words, on checked and unchecked
//! devices.
//!
//! `TILEWORK_CASES` is the number of cases per op (200 in the complete run, 25 in the default one), `TILEWORK_SEED` the
//! seed (1). A failure is shrunk before it is reported; the report states both numbers, which reproduce it.

mod attention;
mod conv;
mod dense;
mod draw;
mod elementwise;
mod guarded;
mod image;
mod long;
mod named;
mod nn;
mod primitives;
mod quantize;
mod soak;
mod sparse;

use crate::support::coverage::cases;
use crate::support::{Device, devices};
use draw::{Choices, Draw};
use guarded::{Case, Outcome};
use proptest::prelude::{Just, Strategy, any};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use std::cell::Cell;
use std::str::FromStr;
use std::sync::OnceLock;

fn setting<T: FromStr>(name: &str, default: T) -> T {
    let Ok(text) = std::env::var(name) else { return default };
    text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number"))
}

/// The compared devices run every case, the others a quarter of them.
fn runs_on(device: &Device, spec: usize) -> bool {
    device.main || device.label.ends_with("checked)") || spec % 4 == 1
}

/// Whether each device flushes subnormal numbers to 0, which changes operands.
fn flushes() -> &'static [bool] {
    static FLUSHES: OnceLock<Vec<bool>> = OnceLock::new();
    let of = |device: &Device| {
        let [x, y] = [1e-39f32, 0.0].map(|x| device.gpu.upload(&[x]).unwrap());
        device.gpu.axpy(1.0, &x, &y).unwrap();
        y.read().unwrap() == [0.0]
    };
    FLUSHES.get_or_init(|| devices().iter().map(of).collect())
}

/// Draws cases of an op and runs them.
fn check(op: &str, case: impl Fn(&mut Draw) -> Case) {
    let devices: Vec<Device> = devices().iter().map(Device::again).collect();
    if devices.is_empty() {
        return;
    }
    let (cases, seed) = (setting("TILEWORK_CASES", cases(200) as u32), setting("TILEWORK_SEED", 1u64));
    // Kernels compile slowly, so options come from a few sets; shapes and contents do not.
    let specs = (cases as usize / 16).max(5);
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes.iter_mut().skip(8).zip(op.bytes()).for_each(|(to, from)| *to = from);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 400, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let choices = proptest::array::uniform16(any::<u32>());
    let strategy = (0..specs, choices, any::<u64>().prop_flat_map(Just).no_shrink());
    let options = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (ran, refused) = (Cell::new(0u32), Cell::new(0u32));
    let result = TestRunner::new_with_rng(config, rng).run(&strategy, |(spec, choices, contents)| {
        let case =
            case(&mut Draw::new(op, options.wrapping_add(spec as u64), spec, Choices(choices), contents));
        let mut first: Option<Outcome> = None;
        let flushed = case.has_subnormals();
        for (device, flushes) in devices.iter().zip(flushes()).filter(|(d, _)| runs_on(d, spec)) {
            if flushed && *flushes {
                refused.set(refused.get() + u32::from(device.main));
                continue;
            }
            let fail = |why: String| TestCaseError::fail(format!("{}: {}: {why}", device.label, case.what));
            let checked = device.label.ends_with(", checked)");
            let Some(outcome) = case.run(&device.gpu, checked).map_err(fail)? else {
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
    match result {
        Ok(()) => {
            println!("{op}: {} cases ran and the device rejected {}, {by}", ran.get(), refused.get());
            assert!(8 * ran.get() >= refused.get(), "{op}: the device rejects nearly all cases, {by}");
        }
        Err(TestError::Abort(why)) => panic!("{op}: {why}, {by}"),
        Err(TestError::Fail(why, smallest)) => panic!("{op}: {why}\nof {smallest:?}, {by}"),
    }
}

/// A test for each op, and the list of their names.
macro_rules! properties {
    ($($test:ident: $op:literal, $case:path;)*) => {
        const CASES: &[(&str, fn(&mut Draw) -> Case)] = &[$(($op, $case)),*];
        $(
            #[test]
            fn $test() {
                check($op, $case);
            }
        )*
    };
}

properties! {
    axpy: "axpy", elementwise::axpy;
    map: "map", elementwise::map;
    zip: "zip", elementwise::zip;
    reduce: "reduce", primitives::reduce;
    scan: "scan", primitives::scan;
    segmented_scan: "segmented-scan", primitives::segmented_scan;
    segmented_reduce: "segmented-reduce", primitives::segmented_reduce;
    reduce_by_key: "reduce-by-key", primitives::reduce_by_key;
    select: "select", primitives::select;
    partition: "partition", primitives::partition;
    unique: "unique", primitives::unique;
    run_length: "run-length", primitives::run_length;
    sort: "sort", primitives::sort;
    top_k: "top-k", primitives::top_k;
    histogram: "histogram", primitives::histogram;
    gemm: "gemm", dense::gemm;
    gemm_batched: "gemm-batched", dense::gemm_batched;
    gemv: "gemv", dense::gemv;
    transpose: "transpose", dense::transpose;
    spmv: "spmv", sparse::spmv;
    spmm: "spmm", sparse::spmm;
    spconvert: "spconvert", sparse::spconvert;
    filter1d: "filter1d", conv::filter1d;
    filter2d: "filter2d", conv::filter2d;
    filter3d: "filter3d", conv::filter3d;
    conv: "conv", conv::conv;
    conv_transpose: "conv-transpose", conv::conv_transpose;
    conv_backward_data: "conv-backward-data", conv::conv_backward_data;
    conv_backward_weights: "conv-backward-weights", conv::conv_backward_weights;
    cast: "cast", quantize::cast;
    quantize: "quantize", quantize::quantize;
    dequantize: "dequantize", quantize::dequantize;
    gemm_int8: "gemm-int8", quantize::gemm_int8;
    grey: "grey", image::grey;
    blur: "blur", image::blur;
    gaussian: "gaussian", image::gaussian;
    sobel: "sobel", image::sobel;
    equalize: "equalize", image::equalize;
    softmax: "softmax", nn::softmax;
    log_softmax: "log-softmax", nn::log_softmax;
    layer_norm: "layer-norm", nn::layer_norm;
    rms_norm: "rms-norm", nn::rms_norm;
    softmax_backward: "softmax-backward", nn::softmax_backward;
    log_softmax_backward: "log-softmax-backward", nn::log_softmax_backward;
    layer_norm_backward: "layer-norm-backward", nn::layer_norm_backward;
    rms_norm_backward: "rms-norm-backward", nn::rms_norm_backward;
    pool: "pool", nn::pool;
    pool_backward: "pool-backward", nn::pool_backward;
    batch_norm: "batch-norm", nn::batch_norm;
    activation_backward: "activation-backward", nn::activation_backward;
    bias_backward: "bias-backward", nn::bias_backward;
    cross_entropy: "cross-entropy", nn::cross_entropy;
    squared_error: "squared-error", nn::squared_error;
    sgd: "sgd", nn::sgd;
    adam: "adam", nn::adam;
    gather_rows: "gather-rows", nn::gather_rows;
    mean_pool: "mean-pool", nn::mean_pool;
    rope: "rope", nn::rope;
    attention: "attention", attention::attention;
    kv_append: "kv-append", attention::kv_append;
}

/// Ops whose cases need no special shapes or contents.
#[test]
fn other_ops_match_reference() {
    let own = |name: &str| CASES.iter().any(|(op, _)| *op == name);
    for op in tilework::operations().filter(|op| !op.solver && !own(op.name)) {
        check(op.name, |draw| named::case(draw, op));
    }
}

#[test]
fn every_case_names_an_op() {
    let unknown = CASES.iter().find(|(name, _)| tilework::operations().all(|op| op.name != *name));
    assert!(unknown.is_none(), "{:?}", unknown.map(|(name, _)| name));
}
