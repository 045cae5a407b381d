//! The published ONNX backend cases, for the operators that tilework can express.
//!
//! TILEWORK_ONNX names the folder of the node cases (`bash .ci/oracles` fetches them); the folder
//! `pytorch-converted` beside it is read too. A case is in scope if its one node is in [`OPERATORS`] and has a
//! meaning in tilework. Everything else is out of scope, counted with the reason. Work on the host is limited
//! to moving elements: a broadcast operand is replicated, reduced axes are brought to the end.
//!
//! How close a result must be: every op states how far its result may be from the exact one (precision of
//! f32, number of terms). The published result came from NumPy in the same type and may be as far off on the
//! other side, so the two may differ by twice that bound. ONNX's own runner takes `1e-7 + 1e-3 |wanted|`;
//! that must hold as well. What moves or compares elements, integers and positions are exact.

/// Evaluates the expression for the element type `dtype`, if it is listed; any other is out of scope for the reason.
macro_rules! by_type {
    ($dtype:expr, [$($t:ident),+], $why:expr, $T:ident => $body:expr) => {
        match $dtype {
            $(<$t as tilework::Element>::DTYPE => {
                type $T = $t;
                $body
            })+
            other => Err(Stop::out_of_scope($why, other)),
        }
    };
}

mod array;
mod attention;
mod conv;
mod dense;
mod elementwise;
mod nn;
mod primitives;
mod quantize;
mod reduce;
mod top_k;

use crate::support::devices;
use crate::support::onnx::{Attribute, Case, DataSet, Node, Tensor, TensorData, load_cases};
use array::Array;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;
use std::path::Path;
use tilework::elementwise::ZipFn;
use tilework::nn::PoolKind;
use tilework::reference::fp8_value;
use tilework::{DType, Gpu};

/// Runs the one node of a case.
type Runner = fn(&Call) -> Result<Array, Stop>;

/// The same, if it has several results.
type SeveralRunner = fn(&Call) -> Result<Vec<Array>, Stop>;

/// The operators in scope.
const OPERATORS: &[(&str, Runner)] = &[
    ("Abs", |call| elementwise::map(call, &elementwise::abs())),
    ("Add", |call| elementwise::fold(call, &ZipFn::Add)),
    ("ArgMax", reduce::arg_max),
    ("ArgMin", reduce::arg_min),
    ("AveragePool", |call| nn::pool(call, PoolKind::Average)),
    ("Cast", quantize::cast),
    ("Compress", primitives::compress),
    ("Conv", conv::conv),
    ("ConvTranspose", conv::conv_transpose),
    ("CumSum", primitives::cum_sum),
    ("DequantizeLinear", quantize::dequantize),
    ("Div", |call| elementwise::fold(call, &ZipFn::Div)),
    ("Einsum", dense::einsum),
    ("Exp", |call| elementwise::map(call, &elementwise::exp())),
    ("Gather", nn::gather),
    ("Gelu", elementwise::exact_gelu),
    ("Gemm", dense::gemm),
    ("GlobalAveragePool", |call| nn::global_pool(call, PoolKind::Average)),
    ("GlobalMaxPool", |call| nn::global_pool(call, PoolKind::Max)),
    ("LogSoftmax", |call| nn::softmax(call, true)),
    ("LpPool", |call| nn::pool(call, PoolKind::L2)),
    ("MatMul", dense::matmul),
    ("MatMulInteger", quantize::matmul_integer),
    ("Max", |call| elementwise::fold(call, &ZipFn::Max)),
    ("MaxPool", |call| nn::pool(call, PoolKind::Max)),
    ("Mean", elementwise::mean),
    ("Min", |call| elementwise::fold(call, &ZipFn::Min)),
    ("Mul", |call| elementwise::fold(call, &ZipFn::Mul)),
    ("Neg", |call| elementwise::map(call, &elementwise::neg())),
    ("NonZero", primitives::non_zero),
    ("QuantizeLinear", quantize::quantize),
    ("RMSNormalization", |call| nn::norm(call, true)),
    ("ReduceL1", reduce::l1),
    ("ReduceL2", reduce::l2),
    ("ReduceLogSum", reduce::log_sum),
    ("ReduceLogSumExp", reduce::log_sum_exp),
    ("ReduceMax", reduce::max),
    ("ReduceMean", reduce::mean),
    ("ReduceMin", reduce::min),
    ("ReduceProd", reduce::prod),
    ("ReduceSum", reduce::sum),
    ("ReduceSumSquare", reduce::sum_square),
    ("Relu", |call| elementwise::map(call, &elementwise::relu())),
    ("RotaryEmbedding", nn::rotary_embedding),
    ("Sigmoid", |call| elementwise::map(call, &elementwise::sigmoid())),
    ("Sign", |call| elementwise::map(call, &elementwise::sign())),
    ("Softmax", |call| nn::softmax(call, false)),
    ("Sqrt", |call| elementwise::map(call, &elementwise::sqrt())),
    ("Sub", |call| elementwise::fold(call, &ZipFn::Sub)),
    ("Sum", |call| elementwise::fold(call, &ZipFn::Add)),
    ("Tanh", |call| elementwise::map(call, &elementwise::tanh())),
    ("Transpose", dense::transpose),
];

/// Those with several results.
const WITH_SEVERAL_RESULTS: &[(&str, SeveralRunner)] = &[
    ("Attention", attention::attention),
    ("BatchNormalization", nn::batch_norm),
    ("SoftmaxCrossEntropyLoss", nn::cross_entropy),
    ("TopK", top_k::top_k),
    ("Unique", primitives::unique),
];

/// Operators of which only the first result is the op's: tilework returns no mean and inverse deviation.
const FIRST_RESULT: &[(&str, Runner)] = &[("LayerNormalization", |call| nn::norm(call, false))];

/// The reason that there is no result.
enum Stop {
    /// Out of scope: the reason, and the part of the case it applies to.
    OutOfScope { why: &'static str, what: String },
    /// The failure.
    Failed(String),
}

impl Stop {
    fn out_of_scope(why: &'static str, what: impl fmt::Display) -> Self {
        Self::OutOfScope { why, what: what.to_string() }
    }
}

impl From<tilework::Error> for Stop {
    fn from(error: tilework::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// A node with its operands, and where it runs.
struct Call<'a> {
    gpu: &'a Gpu,
    node: &'a Node,
    /// Version of the operators.
    opset: i64,
    /// By position; an optional operand left out is `None`.
    inputs: Vec<Option<&'a Tensor>>,
}

impl<'a> Call<'a> {
    fn new(gpu: &'a Gpu, case: &'a Case, node: &'a Node, set: &'a DataSet) -> Result<Self, Stop> {
        let given = case.graph_inputs.iter().zip(&set.inputs);
        let constants = case.initializers.iter().map(|(name, tensor)| (name, tensor));
        let values: BTreeMap<_, _> = given.chain(constants).collect();
        let find = |name: &String| match values.get(name) {
            Some(tensor) => Ok(Some(*tensor)),
            None if name.is_empty() => Ok(None),
            None => Err(Stop::Failed(format!("nothing gives the operand `{name}`"))),
        };
        let inputs = node.inputs.iter().map(find).collect::<Result<_, _>>()?;
        Ok(Self { gpu, node, opset: case.opset, inputs })
    }

    fn input(&self, i: usize) -> Option<&'a Tensor> {
        self.inputs.get(i).copied().flatten()
    }

    /// An operand that must be there.
    fn operand(&self, i: usize) -> Result<(DType, Array), Stop> {
        let tensor = self.input(i).ok_or_else(|| Stop::Failed(format!("operand {i} is missing")))?;
        array(tensor)
    }

    /// All operands that are there; they have one type.
    fn operands(&self) -> Result<(DType, Vec<Array>), Stop> {
        let dtype = self.operand(0)?.0;
        let arrays = self.inputs.iter().flatten().map(|tensor| array(tensor).map(|(_, array)| array));
        Ok((dtype, arrays.collect::<Result<_, _>>()?))
    }

    fn int(&self, name: &str, default: i64) -> i64 {
        match self.node.attribute(name) {
            Some(Attribute::Int(value)) => *value,
            _ => default,
        }
    }

    fn float(&self, name: &str, default: f32) -> f32 {
        match self.node.attribute(name) {
            Some(Attribute::Float(value)) => *value,
            _ => default,
        }
    }

    /// A list that newer operator sets give as operand `i`, older ones as an attribute.
    fn ints(&self, i: usize, name: &str) -> Vec<i64> {
        match (self.input(i).map(|tensor| &tensor.data), self.node.attribute(name)) {
            (Some(TensorData::I64(values)), _) | (_, Some(Attribute::Ints(values))) => values.clone(),
            _ => Vec::new(),
        }
    }
}

/// A tensor of a type that buffers support.
fn array(tensor: &Tensor) -> Result<(DType, Array), Stop> {
    let dtype = match &tensor.data {
        TensorData::F32(_) => DType::F32,
        TensorData::F16(_) => DType::F16,
        TensorData::I32(_) => DType::I32,
        TensorData::U32(_) => DType::U32,
        TensorData::U8(_) => DType::U8,
        TensorData::I8(_) => DType::I8,
        // A buffer may hold them, but no op computes with them.
        TensorData::U64(_) => DType::U64,
        other => return Err(Stop::out_of_scope("tilework has no such element type", other.type_name())),
    };
    Ok((dtype, Array::exact(tensor.dims.clone(), numbers(&tensor.data))))
}

/// The elements as numbers; none for a type that was not read.
fn numbers(data: &TensorData) -> Vec<f64> {
    match data {
        TensorData::F32(v) => v.iter().map(|&x| x.into()).collect(),
        TensorData::F16(v) => v.iter().map(|&x| x.into()).collect(),
        TensorData::F64(v) => v.clone(),
        TensorData::I32(v) => v.iter().map(|&x| x.into()).collect(),
        TensorData::I64(v) => v.iter().map(|&x| x as f64).collect(),
        TensorData::U32(v) => v.iter().map(|&x| x.into()).collect(),
        TensorData::U64(v) => v.iter().map(|&x| x as f64).collect(),
        TensorData::I8(v) => v.iter().map(|&x| x.into()).collect(),
        TensorData::U8(v) => v.iter().map(|&x| x.into()).collect(),
        TensorData::Bool(v) => v.iter().map(|&x| x.into()).collect(),
        TensorData::F8(v) => v.iter().map(|&x| fp8_value(x).into()).collect(),
        TensorData::Other(_) => Vec::new(),
    }
}

/// Runs all data sets of a case.
fn run(gpu: &Gpu, case: &Case) -> Result<(), Stop> {
    let [node] = case.nodes.as_slice() else {
        return Err(Stop::out_of_scope("several nodes", "cases"));
    };
    let one = OPERATORS.iter().find(|(name, _)| *name == node.op_type);
    let first = FIRST_RESULT.iter().find(|(name, _)| *name == node.op_type);
    let several = WITH_SEVERAL_RESULTS.iter().find(|(name, _)| *name == node.op_type);
    if one.is_none() && first.is_none() && several.is_none() {
        return Err(Stop::out_of_scope("tilework has no such op", &node.op_type));
    }
    if let Some(reason) = &case.unsupported {
        return Err(Stop::Failed(reason.clone()));
    }
    for set in &case.sets {
        let call = Call::new(gpu, case, node, set)?;
        let mut got: Vec<Array> = one.or(first).map(|(_, runner)| runner(&call)).transpose()?.into_iter().collect();
        got.extend(several.map(|(_, runner)| runner(&call)).transpose()?.into_iter().flatten());
        if got.len() != set.outputs.len() && first.is_none() {
            return Err(Stop::Failed(format!("{} results instead of {}", set.outputs.len(), got.len())));
        }
        for (got, want) in got.iter().zip(&set.outputs) {
            compare(got, want).map_err(Stop::Failed)?;
        }
    }
    if case.sets.is_empty() { Err(Stop::Failed("no data".into())) } else { Ok(()) }
}

/// See the rule at the top of this file.
fn compare(got: &Array, want: &Tensor) -> Result<(), String> {
    if got.dims != want.dims {
        return Err(format!("the result has shape {:?}, wanted {:?}", got.dims, want.dims));
    }
    let want = numbers(&want.data);
    if got.values.len() != want.len() || got.bound.len() != want.len() {
        return Err(format!("the result has {} elements, wanted {}", got.values.len(), want.len()));
    }
    for (i, ((&g, &w), bound)) in got.values.iter().zip(&want).zip(&got.bound).enumerate() {
        let allowed = (2.0 * bound).min(1e-7 + 1e-3 * w.abs());
        let same = g == w || (g.is_nan() && w.is_nan());
        let near = g.is_finite() && w.is_finite() && (g - w).abs() <= allowed;
        if !same && !near {
            return Err(format!("element {i} is {g}, wanted {w} within {allowed:.1e}"));
        }
    }
    Ok(())
}

/// The outcomes of the cases of one operator.
#[derive(Default)]
struct Row {
    passed: usize,
    failed: usize,
    /// The number of cases by reason and what it applies to.
    out_of_scope: BTreeMap<&'static str, BTreeMap<String, usize>>,
}

impl Row {
    fn count(&mut self, outcome: Result<(), Stop>) -> Option<String> {
        match outcome {
            Ok(()) => self.passed += 1,
            Err(Stop::OutOfScope { why, what }) => {
                *self.out_of_scope.entry(why).or_default().entry(what).or_default() += 1;
            }
            Err(Stop::Failed(reason)) => {
                self.failed += 1;
                return Some(reason);
            }
        }
        None
    }

    fn left_out(&self) -> usize {
        self.out_of_scope.values().flat_map(BTreeMap::values).sum()
    }

    fn reasons(&self) -> String {
        let reasons = self.out_of_scope.iter().map(|(why, what)| {
            let list = match what.len() {
                // Too many to list.
                12.. => format!("{} cases of {} kinds", what.values().sum::<usize>(), what.len()),
                _ => what.iter().map(|(what, n)| format!("{n} {what}")).collect::<Vec<_>>().join(", "),
            };
            format!("{why}: {list}")
        });
        reasons.collect::<Vec<_>>().join("; ")
    }
}

/// One line for each operator, all others together, and the totals.
struct Table {
    title: String,
    rows: BTreeMap<&'static str, Row>,
    others: Row,
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        writeln!(f, "  {:<17} {:>6} {:>6} {:>12}", "operator", "passed", "failed", "out of scope")?;
        let line = |f: &mut fmt::Formatter<'_>, name: &str, counts: [usize; 3], reasons: String| {
            let [passed, failed, left_out] = counts;
            let text = format!("  {name:<17} {passed:>6} {failed:>6} {left_out:>12}  {reasons}");
            writeln!(f, "{}", text.trim_end())
        };
        let mut totals = [0; 3];
        let rows = self.rows.iter().map(|(name, row)| (*name, row));
        for (name, row) in rows.chain([("all others", &self.others)]) {
            let counts = [row.passed, row.failed, row.left_out()];
            totals = [0, 1, 2].map(|i| totals[i] + counts[i]);
            line(f, name, counts, row.reasons())?;
        }
        let all = totals.iter().sum::<usize>();
        line(f, "total", totals, format!("{all} cases"))
    }
}

/// Writes to standard error directly, so that the result is shown although the test passes.
fn announce(text: &dyn fmt::Display) {
    // A closed standard error is not a failure.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

#[test]
fn onnx_backend_cases_match_published_results() {
    let Some(folder) = std::env::var_os("TILEWORK_ONNX") else {
        announce(&"skipped: the ONNX cases; set TILEWORK_ONNX to their folder (.ci/oracles fetches them)");
        return;
    };
    let folder = Path::new(&folder);
    let mut cases = load_cases(folder).expect("TILEWORK_ONNX names the folder of the node cases");
    let converted = folder.with_file_name("pytorch-converted");
    let node_cases = cases.len();
    if converted.is_dir() {
        cases.extend(load_cases(&converted).expect("the cases beside TILEWORK_ONNX are readable"));
    }
    let suites = format!("{node_cases} node, {} pytorch-converted", cases.len() - node_cases);

    let floor = |label: &str| label.contains("WebGPU");
    let mut failures = Vec::new();
    for device in devices().iter().filter(|device| device.main || floor(&device.label)) {
        let title = format!("ONNX backend cases ({suites}) on {}:", device.label);
        let names = OPERATORS.iter().map(|(name, _)| *name);
        let names = names.chain(FIRST_RESULT.iter().map(|(name, _)| *name));
        let names = names.chain(WITH_SEVERAL_RESULTS.iter().map(|(name, _)| *name));
        let rows = names.map(|name| (name, Row::default())).collect();
        let mut table = Table { title, rows, others: Row::default() };
        for case in &cases {
            let operator = case.nodes.first().map_or("", |node| &node.op_type);
            let row = match (table.rows.get_mut(operator), case.nodes.len()) {
                (Some(row), 1) => row,
                _ => &mut table.others,
            };
            if let Some(reason) = row.count(run(&device.gpu, case)) {
                failures.push(format!("{}: {}: {reason}", device.label, case.name));
            }
        }
        announce(&table);
        for (name, row) in table.rows.iter().filter(|(_, row)| row.passed + row.failed == 0) {
            failures.push(format!("{}: no case of {name} ran ({})", device.label, row.reasons()));
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
