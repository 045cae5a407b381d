//! Op names to descriptors: the one place that knows what each op takes on the command line.

use super::array::{Array, Data, refuse, shape_text, with_data, with_type};
use super::failure::{Failure, open_file, room_for};
use super::npy;
use half::f16;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::BufReader;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use tilework::attention::{Attention, KvType};
use tilework::conv::{Boundary, Conv1d, Conv2d, Conv3d};
use tilework::conv::{Conv, ConvBackwardData, ConvBackwardWeights, ConvTranspose};
use tilework::dense::{Activation, Gemm, GemmBatched, Gemv, Precision, Transpose};
use tilework::elementwise::{Axpy, Map, MapFn, Zip, ZipFn};
use tilework::gpu::Executable;
use tilework::image::{Blur, Divide, Equalize, Gaussian, Gradient, Grey, GreyWeights, Image, Layout, Sobel};
use tilework::io::matrix_market::{self, Matrix, Triplets};
use tilework::nn::{
    ActivationBackward, Adam, BatchNorm, BiasBackward, CrossEntropy, LayerNormBackward, LogSoftmaxBackward,
    RmsNormBackward, Sgd, SoftmaxBackward, SquaredError,
};
use tilework::nn::{GatherRows, MeanPool};
use tilework::nn::{LayerNorm, LogSoftmax, Pool2d, Pool2dBackward, PoolKind, RmsNorm, Rope, Softmax};
use tilework::primitives::Reducer;
use tilework::program::{DeviceProfile, Op, Program};
use tilework::quantize::{Cast, Dequantize, GemmInt8, Quantize, Scales};
use tilework::reference;
use tilework::reference::Number;
use tilework::sparse::{
    Csr, Duplicates, Format, HostMatrix, List, SparseMatrix, Spconvert, Spmm, Spmv, Statistics, Stored,
    Target,
};
use tilework::{
    ArgMax, ArgMin, DType, Element, Gpu, Histogram, Max, Min, Partition, Plannable, Prod, RadixSort,
};
use tilework::{
    Reduce, ReduceByKey, RunLength, Scan, SegmentedReduce, SegmentedScan, Select, Sum, TopK, Unique,
};

/// Every op, as the command line has it.
const COMMANDS: &[Command] = &[
    Command { name: "axpy", inputs: 2..=2, keys: &[value("alpha")], job: axpy },
    Command { name: "map", inputs: 1..=1, keys: &[value("fn")], job: map },
    Command { name: "zip", inputs: 2..=2, keys: &[value("fn")], job: zip },
    Command { name: "reduce", inputs: 1..=1, keys: &[value("op"), value("axis")], job: reduce },
    Command { name: "sort", inputs: 1..=2, keys: &[flag("descending")], job: sort },
    Command { name: "top-k", inputs: 1..=1, keys: &[value("k"), flag("smallest")], job: top_k },
    Command { name: "select", inputs: 2..=2, keys: &[], job: select },
    Command { name: "partition", inputs: 2..=2, keys: &[], job: partition },
    Command { name: "unique", inputs: 1..=1, keys: &[], job: unique },
    Command { name: "run-length", inputs: 1..=1, keys: &[], job: run_length },
    Command { name: "reduce-by-key", inputs: 2..=2, keys: &[value("op")], job: reduce_by_key },
    Command { name: "segmented-reduce", inputs: 2..=2, keys: &[value("op")], job: segmented_reduce },
    Command {
        name: "histogram",
        inputs: 1..=1,
        keys: &[value("bins"), value("lo"), value("hi"), value("edges")],
        job: histogram,
    },
    Command {
        name: "scan",
        inputs: 1..=1,
        keys: &[value("op"), flag("exclusive"), flag("reverse")],
        job: scan,
    },
    Command {
        name: "segmented-scan",
        inputs: 2..=2,
        keys: &[value("op"), flag("exclusive")],
        job: segmented_scan,
    },
    Command {
        name: "gemm",
        inputs: 2..=3,
        keys: &[
            value("alpha"),
            value("beta"),
            flag("trans-a"),
            flag("trans-b"),
            value("bias"),
            value("activation"),
            value("precision"),
        ],
        job: gemm,
    },
    Command {
        name: "gemm-batched",
        inputs: 2..=2,
        keys: &[value("alpha"), flag("trans-a"), flag("trans-b")],
        job: gemm_batched,
    },
    Command { name: "cast", inputs: 1..=1, keys: &[], job: cast },
    Command { name: "gemm-int8", inputs: 2..=2, keys: &[], job: gemm_int8 },
    Command {
        name: "quantize",
        inputs: 1..=1,
        keys: &[value("kind"), value("per"), value("group")],
        job: quantize,
    },
    Command { name: "dequantize", inputs: 2..=2, keys: &[value("kind")], job: dequantize },
    Command { name: "gemv", inputs: 2..=2, keys: &[flag("trans"), value("alpha")], job: gemv },
    Command {
        name: "spmv",
        inputs: 2..=3,
        keys: &[value("format"), value("alpha"), value("beta")],
        job: spmv,
    },
    Command { name: "spmm", inputs: 2..=2, keys: &[value("format")], job: spmm },
    Command { name: "spconvert", inputs: 1..=1, keys: &[value("through")], job: spconvert },
    Command { name: "transpose", inputs: 1..=1, keys: &[], job: transpose },
    Command { name: "conv1d", inputs: 2..=2, keys: &[value("boundary")], job: conv1d },
    Command { name: "conv2d", inputs: 2..=2, keys: &[value("boundary")], job: conv2d },
    Command { name: "conv3d", inputs: 2..=2, keys: &[value("boundary")], job: conv3d },
    Command {
        name: "conv",
        inputs: 2..=3,
        keys: &[value("stride"), value("pad"), value("dilation"), value("groups"), value("activation")],
        job: conv,
    },
    Command {
        name: "conv-transpose",
        inputs: 2..=3,
        keys: &[
            value("stride"),
            value("pad"),
            value("dilation"),
            value("groups"),
            value("output-padding"),
            value("activation"),
        ],
        job: conv_transpose,
    },
    Command {
        name: "conv-backward-data",
        inputs: 2..=2,
        keys: &[value("shape"), value("stride"), value("pad"), value("dilation"), value("groups")],
        job: conv_backward_data,
    },
    Command {
        name: "conv-backward-weights",
        inputs: 2..=2,
        keys: &[value("shape"), value("stride"), value("pad"), value("dilation"), value("groups")],
        job: conv_backward_weights,
    },
    Command { name: "grey", inputs: 1..=1, keys: &[value("weights"), value("layout")], job: grey },
    Command {
        name: "blur",
        inputs: 1..=1,
        keys: &[value("radius"), value("divide"), value("layout")],
        job: blur,
    },
    Command {
        name: "gaussian",
        inputs: 1..=1,
        keys: &[value("sigma"), value("radius"), value("boundary"), value("layout")],
        job: gaussian,
    },
    Command { name: "sobel", inputs: 1..=1, keys: &[value("gradient"), value("layout")], job: sobel },
    Command {
        name: "equalize",
        inputs: 1..=1,
        keys: &[value("lo"), value("hi"), value("layout")],
        job: equalize,
    },
    Command {
        name: "attention",
        inputs: 3..=4,
        keys: &[flag("causal"), value("window"), value("scale"), value("kv-type"), value("page")],
        job: attention,
    },
    Command { name: "rope", inputs: 3..=4, keys: &[flag("interleaved")], job: rope },
    Command { name: "softmax", inputs: 1..=1, keys: &[], job: |call| softmax("softmax", call) },
    Command { name: "log-softmax", inputs: 1..=1, keys: &[], job: |call| softmax("log-softmax", call) },
    Command {
        name: "layer-norm",
        inputs: 2..=3,
        keys: &[value("eps")],
        job: |call| norm("layer-norm", call),
    },
    Command { name: "rms-norm", inputs: 2..=3, keys: &[value("eps")], job: |call| norm("rms-norm", call) },
    Command {
        name: "pool",
        inputs: 1..=1,
        keys: &[
            value("kind"),
            value("weights"),
            value("bias"),
            value("activation"),
            value("kernel"),
            value("stride"),
            value("pad"),
            flag("count-include-pad"),
        ],
        job: pool,
    },
    Command {
        name: "pool-backward",
        inputs: 2..=2,
        keys: &[
            value("kind"),
            value("weights"),
            value("kernel"),
            value("stride"),
            value("pad"),
            flag("count-include-pad"),
        ],
        job: pool_backward,
    },
    Command {
        name: "batch-norm",
        inputs: 5..=5,
        keys: &[value("eps"), value("activation")],
        job: batch_norm,
    },
    Command { name: "cross-entropy", inputs: 2..=2, keys: &[], job: cross_entropy },
    Command { name: "squared-error", inputs: 2..=2, keys: &[], job: squared_error },
    Command {
        name: "activation-backward",
        inputs: 2..=2,
        keys: &[value("activation")],
        job: activation_backward,
    },
    Command { name: "bias-backward", inputs: 1..=1, keys: &[], job: bias_backward },
    Command {
        name: "softmax-backward",
        inputs: 2..=2,
        keys: &[],
        job: |call| softmax_backward("softmax-backward", call),
    },
    Command {
        name: "log-softmax-backward",
        inputs: 2..=2,
        keys: &[],
        job: |call| softmax_backward("log-softmax-backward", call),
    },
    Command {
        name: "layer-norm-backward",
        inputs: 3..=3,
        keys: &[value("eps")],
        job: |call| norm_backward("layer-norm-backward", call),
    },
    Command {
        name: "rms-norm-backward",
        inputs: 3..=3,
        keys: &[value("eps")],
        job: |call| norm_backward("rms-norm-backward", call),
    },
    Command {
        name: "sgd",
        inputs: 2..=3,
        keys: &[value("rate"), value("momentum"), value("decay"), flag("nesterov")],
        job: sgd,
    },
    Command {
        name: "adam",
        inputs: 5..=5,
        keys: &[
            value("rate"),
            value("beta1"),
            value("beta2"),
            value("eps"),
            value("decay"),
            flag("decoupled"),
        ],
        job: adam,
    },
    Command { name: "gather-rows", inputs: 2..=2, keys: &[], job: gather_rows },
    Command { name: "mean-pool", inputs: 2..=2, keys: &[flag("normalized")], job: mean_pool },
];

/// An op on the command line.
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// How many input files it takes.
    pub(crate) inputs: RangeInclusive<usize>,
    keys: &'static [Key],
    /// Checks inputs and keys and says what to run.
    pub(crate) job: fn(Call<'_>) -> Result<Job, Failure>,
}

/// A key of an op.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) takes_value: bool,
}

const fn value(name: &'static str) -> Key {
    Key { name, takes_value: true }
}

const fn flag(name: &'static str) -> Key {
    Key { name, takes_value: false }
}

impl Command {
    pub(crate) fn find(name: &str) -> Result<&'static Self, Failure> {
        COMMANDS.iter().find(|c| c.name == name).ok_or_else(|| {
            let names: Vec<_> = COMMANDS.iter().map(|c| c.name).collect();
            refuse!("no op `{name}`; there are: {}", names.join(", "))
        })
    }

    pub(crate) fn key(&self, name: &str) -> Option<Key> {
        self.keys.iter().copied().find(|k| k.name == name)
    }

    /// Whether the first input is a sparse matrix, in a Matrix Market file.
    pub(crate) fn takes_matrix(&self) -> bool {
        matches!(self.name, "spmv" | "spmm" | "spconvert")
    }

    pub(crate) fn key_names(&self) -> String {
        self.keys.iter().map(|k| format!("--{}", k.name)).collect::<Vec<_>>().join(", ")
    }
}

/// What was asked of an op.
pub(crate) struct Call<'a> {
    /// The first input of an op that takes a sparse matrix; `inputs` are those behind it.
    pub(crate) matrix: Csr,
    pub(crate) inputs: Vec<Array>,
    pub(crate) keys: &'a Keys,
    pub(crate) variant: &'a str,
}

/// Lowers an op whose element type is no longer known.
type Lower = Box<dyn Fn(&DeviceProfile) -> tilework::Result<Program>>;

/// Plans it for a device.
type Prepare = Box<dyn Fn(&Gpu) -> tilework::Result<Executable>>;

/// What to run, and on what.
pub(crate) struct Job {
    pub(crate) lower: Lower,
    pub(crate) plan: Prepare,
    /// One for each of the program's operands.
    pub(crate) operands: Vec<Operand>,
    /// What a device does first.
    pub(crate) before: Option<Before>,
}

/// What a device does with a matrix before a job can be planned.
pub(crate) enum Before {
    /// Looks for the format that suits it; the job is of that.
    Suit(Csr, Suited),
    /// Brings it into a format, and back: that is the job.
    Convert(Csr, Target),
}

/// The job that was made for any format, with the one that suits the matrix, and what was seen of it.
type Suited = Box<dyn FnOnce(Job, &HostMatrix, &Statistics) -> Result<Job, Failure>>;

/// Where an operand comes from and goes to.
pub(crate) enum Operand {
    /// An input.
    Given(Array),
    /// An input that is overwritten with an output.
    Updated(Array),
    /// An output of this shape.
    Result(Vec<usize>),
    /// An output of which only the front is wanted, as much as the last operand says.
    Counted,
    /// The number that says so, which is no output itself.
    Count,
}

/// Keys that were given, with their values; none for flags.
#[derive(Default)]
pub(crate) struct Keys(Vec<(&'static str, Option<OsString>)>);

impl Keys {
    pub(crate) fn add(&mut self, name: &'static str, value: Option<OsString>) -> Result<(), Failure> {
        if self.flag(name) {
            return Err(refuse!("--{name} is given twice"));
        }
        self.0.push((name, value));
        Ok(())
    }

    fn flag(&self, name: &str) -> bool {
        self.0.iter().any(|(n, _)| *n == name)
    }

    fn get(&self, name: &str) -> Option<&OsString> {
        self.0.iter().find(|(n, _)| *n == name)?.1.as_ref()
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }

    fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(|v| v.to_string_lossy().into_owned())
    }

    fn number<T: FromStr<Err: Display>>(&self, name: &str, default: T) -> Result<T, Failure> {
        match self.text(name) {
            None => Ok(default),
            Some(text) => text.parse().map_err(|e| refuse!("--{name} {text}: {e}")),
        }
    }

    /// One number, or two as "h,w".
    fn pair(&self, name: &str, default: [usize; 2]) -> Result<[usize; 2], Failure> {
        let Some(text) = self.text(name) else { return Ok(default) };
        let number = |part: &str| part.trim().parse().map_err(|e| refuse!("--{name} {text}: {e}"));
        match text.split(',').collect::<Vec<_>>()[..] {
            [both] => Ok([number(both)?; 2]),
            [h, w] => Ok([number(h)?, number(w)?]),
            _ => Err(refuse!("--{name} {text}: must be one number, or two as \"h,w\"")),
        }
    }

    /// Four extents, as "a,b,c,d".
    fn extents(&self, name: &str, letters: &str) -> Result<[usize; 4], Failure> {
        let text = self.text(name).ok_or_else(|| refuse!("--{name} {letters} is missing"))?;
        let wrong = || refuse!("--{name} {text}: must be four numbers, {letters}");
        let parts = text.split(',').map(|part| part.trim().parse().map_err(|_| wrong()));
        parts.collect::<Result<Vec<_>, _>>()?.try_into().map_err(|_| wrong())
    }

    /// One of `choices`; the first if the key is not given.
    fn choice(&self, name: &str, choices: &[&'static str]) -> Result<&'static str, Failure> {
        let Some(text) = self.text(name) else { return Ok(choices[0]) };
        let found = choices.iter().find(|c| **c == text);
        found.copied().ok_or_else(|| refuse!("--{name} {text}: must be one of {}", choices.join(", ")))
    }
}

impl Call<'_> {
    /// The inputs, if there are `N` of them.
    fn take<const N: usize>(&mut self) -> Result<[Array; N], Failure> {
        let given = self.inputs.len();
        std::mem::take(&mut self.inputs)
            .try_into()
            .map_err(|_| refuse!("{given} input files given, {N} wanted"))
    }
}

fn same_type(op: &str, (name_x, x): (&str, &Array), (name_y, y): (&str, &Array)) -> Result<(), Failure> {
    if x.data.dtype() == y.data.dtype() {
        return Ok(());
    }
    Err(refuse!("{op}: {name_x} is {}, {name_y} is {}; their types must agree", x.describe(), y.describe()))
}

fn same_shape(op: &str, x: &Array, y: &Array) -> Result<(), Failure> {
    if x.shape == y.shape {
        return same_type(op, ("x", x), ("y", y));
    }
    Err(refuse!("{op}: x is {}, y is {}; their shapes must agree", x.describe(), y.describe()))
}

fn job<T: Element>(op: impl Op<T> + Clone + 'static, operands: Vec<Operand>) -> Job {
    let twin = op.clone();
    Job {
        lower: Box::new(move |profile| op.lower(profile)),
        plan: Box::new(move |gpu| Ok(twin.plan::<T>(gpu)?.into_executable())),
        operands,
        before: None,
    }
}

/// A job of an op on words; `$types` are those that the op takes.
macro_rules! job_on_words {
    ($name:literal, $x:ident, $op:expr, $operands:expr) => {
        job_on_words!($name, $x, $op, $operands, "f32, i32 and u32")
    };
    ($name:literal, $x:ident, $op:expr, $operands:expr, $types:literal) => {
        match $x.data.dtype() {
            DType::F32 => Ok(job::<f32>($op, $operands)),
            DType::I32 => Ok(job::<i32>($op, $operands)),
            DType::U32 => Ok(job::<u32>($op, $operands)),
            other => Err(refuse!("{}: the input is of {other}; the op takes {}", $name, $types)),
        }
    };
}

/// As `job_on_words`, and for f16.
macro_rules! job_on_halves {
    ($name:literal, $x:ident, $op:expr, $operands:expr) => {
        match $x.data.dtype() {
            DType::F16 => Ok(job::<f16>($op, $operands)),
            _ => job_on_words!($name, $x, $op, $operands, "f32, f16, i32 and u32"),
        }
    };
}

/// Elements and the flags that belong to them.
fn flagged(op: &str, call: &mut Call<'_>) -> Result<(usize, Array, Array), Failure> {
    let [x, flags] = call.take()?;
    let [n] = x.dims(&format!("{op}: x"))?;
    if flags.shape != x.shape || flags.data.dtype() != DType::U32 {
        return Err(refuse!(
            "{op}: flags is {}; it must be {} of u32",
            flags.describe(),
            shape_text(&x.shape)
        ));
    }
    Ok((n, x, flags))
}

fn select(mut call: Call<'_>) -> Result<Job, Failure> {
    let (n, x, flags) = flagged("select", &mut call)?;
    let op = Select::new(n).variant(call.variant);
    job_on_halves!(
        "select",
        x,
        op,
        vec![Operand::Given(x), Operand::Given(flags), Operand::Counted, Operand::Count]
    )
}

fn partition(mut call: Call<'_>) -> Result<Job, Failure> {
    let (n, x, flags) = flagged("partition", &mut call)?;
    let op = Partition::new(n).variant(call.variant);
    let parted = Operand::Result(vec![n]);
    job_on_halves!("partition", x, op, vec![Operand::Given(x), Operand::Given(flags), parted, Operand::Count])
}

fn unique(mut call: Call<'_>) -> Result<Job, Failure> {
    let [x] = call.take()?;
    let [n] = x.dims("unique: x")?;
    let op = Unique::new(n).variant(call.variant);
    job_on_halves!("unique", x, op, vec![Operand::Given(x), Operand::Counted, Operand::Count])
}

fn run_length(mut call: Call<'_>) -> Result<Job, Failure> {
    let [x] = call.take()?;
    let [n] = x.dims("run-length: x")?;
    let op = RunLength::new(n).variant(call.variant);
    job_on_halves!(
        "run-length",
        x,
        op,
        vec![Operand::Given(x), Operand::Counted, Operand::Counted, Operand::Count]
    )
}

/// The job for one type of keys.
macro_rules! reduce_keys {
    ($key:ty, $op:ident, $n:ident, $variant:ident, $keys:ident, $values:ident) => {{
        macro_rules! by {
            ($sum:ident) => {{
                let reduce = ReduceByKey::new($sum, $n).with_keys::<$key>().variant($variant);
                let x = $values;
                job_on_words!(
                    "reduce-by-key",
                    x,
                    reduce,
                    reduced(vec![Operand::Given($keys), Operand::Given(x)], 2)
                )
            }};
        }
        match $op {
            "sum" => by!(Sum),
            "prod" => by!(Prod),
            "min" => by!(Min),
            _ => by!(Max),
        }
    }};
}

fn reduce_by_key(mut call: Call<'_>) -> Result<Job, Failure> {
    let [keys, values] = call.take()?;
    let [n] = keys.dims("reduce-by-key: keys")?;
    if values.shape != keys.shape {
        return Err(refuse!(
            "reduce-by-key: values are {}; they must be {}, one for each key",
            values.describe(),
            shape_text(&keys.shape)
        ));
    }
    let (op, variant) = (call.keys.choice("op", &["sum", "prod", "min", "max"])?, call.variant);
    match keys.data.dtype() {
        DType::U32 => reduce_keys!(u32, op, n, variant, keys, values),
        DType::I32 => reduce_keys!(i32, op, n, variant, keys, values),
        DType::F32 => reduce_keys!(f32, op, n, variant, keys, values),
        other => Err(refuse!("reduce-by-key: the keys are of {other}; the op takes u32, i32 and f32")),
    }
}

/// The operands with so many outputs of which the front is wanted.
fn reduced(mut operands: Vec<Operand>, outputs: usize) -> Vec<Operand> {
    operands.extend((0..outputs).map(|_| Operand::Counted));
    operands.push(Operand::Count);
    operands
}

fn segmented_reduce(mut call: Call<'_>) -> Result<Job, Failure> {
    let (n, x, heads) = flagged("segmented-reduce", &mut call)?;
    let variant = call.variant;
    macro_rules! by {
        ($op:ident) => {{
            let reduce = SegmentedReduce::new($op, n).variant(variant);
            job_on_words!(
                "segmented-reduce",
                x,
                reduce,
                reduced(vec![Operand::Given(x), Operand::Given(heads)], 1)
            )
        }};
    }
    match call.keys.choice("op", &["sum", "prod", "min", "max"])? {
        "sum" => by!(Sum),
        "prod" => by!(Prod),
        "min" => by!(Min),
        _ => by!(Max),
    }
}

fn axpy(mut call: Call<'_>) -> Result<Job, Failure> {
    let [x, y] = call.take()?;
    let [n] = x.dims("axpy: x")?;
    same_shape("axpy", &x, &y)?;
    let op = Axpy::new(n, call.keys.number("alpha", 1.0)?).variant(call.variant);
    Ok(with_type!(x.data, job(op, vec![Operand::Given(x), Operand::Updated(y)])))
}

fn map(mut call: Call<'_>) -> Result<Job, Failure> {
    let [x] = call.take()?;
    let function: MapFn = call.keys.text("fn").as_deref().unwrap_or("neg").parse()?;
    let op = Map::new(function, x.data.len()).variant(call.variant);
    let y = Operand::Result(x.shape.clone());
    Ok(with_type!(x.data, job(op, vec![Operand::Given(x), y])))
}

fn zip(mut call: Call<'_>) -> Result<Job, Failure> {
    let [x, y] = call.take()?;
    same_shape("zip", &x, &y)?;
    let function: ZipFn = call.keys.text("fn").as_deref().unwrap_or("add").parse()?;
    let op = Zip::new(function, x.data.len()).variant(call.variant);
    let z = Operand::Result(x.shape.clone());
    Ok(with_type!(x.data, job(op, vec![Operand::Given(x), Operand::Given(y), z])))
}

fn reduce(mut call: Call<'_>) -> Result<Job, Failure> {
    let [x] = call.take()?;
    let op = call.keys.choice("op", &["sum", "prod", "min", "max", "argmin", "argmax"])?;
    let (rows, n, shape) = match (call.keys.choice("axis", &["all", "last"])?, x.shape.split_last()) {
        ("all", _) => (1, x.data.len(), Vec::new()),
        (_, Some((&n, rest))) => (rest.iter().product(), n, rest.to_vec()),
        (_, None) => return Err(refuse!("reduce: x is {}; it has no last axis", x.describe())),
    };
    Ok(with_type!(
        x.data,
        reduce_as(op, rows, n, call.variant, vec![Operand::Given(x), Operand::Result(shape)])
    ))
}

fn reduce_as<T: Element>(op: &str, rows: usize, n: usize, variant: &str, operands: Vec<Operand>) -> Job
where
    Sum: Reducer<T>,
    Prod: Reducer<T>,
    Min: Reducer<T>,
    Max: Reducer<T>,
    ArgMin: Reducer<T>,
    ArgMax: Reducer<T>,
{
    match op {
        "sum" => job::<T>(Reduce::rows(Sum, rows, n).variant(variant), operands),
        "prod" => job::<T>(Reduce::rows(Prod, rows, n).variant(variant), operands),
        "min" => job::<T>(Reduce::rows(Min, rows, n).variant(variant), operands),
        "max" => job::<T>(Reduce::rows(Max, rows, n).variant(variant), operands),
        "argmin" => job::<T>(Reduce::rows(ArgMin, rows, n).variant(variant), operands),
        _ => job::<T>(Reduce::rows(ArgMax, rows, n).variant(variant), operands),
    }
}

fn histogram(mut call: Call<'_>) -> Result<Job, Failure> {
    let [x] = call.take()?;
    let (keys, n) = (call.keys, x.data.len());
    let op = match keys.path("edges") {
        Some(path) => {
            if let Some(key) = ["bins", "lo", "hi"].into_iter().find(|key| keys.flag(key)) {
                return Err(refuse!(
                    "histogram: --{key} and --edges are given; the edges say where the bins lie"
                ));
            }
            let edges = npy::read(&path)?;
            if edges.shape.len() != 1 {
                return Err(refuse!("histogram: edges is {}; it must have one dimension", edges.describe()));
            }
            Histogram::with_edges(
                n,
                with_data!(&edges.data, v => v.iter().map(|e| e.to_f64()).collect::<Vec<_>>()),
            )
        }
        None => {
            let bins = keys.number("bins", 256)?;
            let op = Histogram::new(n, bins);
            match (keys.flag("lo"), keys.flag("hi")) {
                (false, false) => op,
                (true, true) => op.range(keys.number("lo", 0.0)?, keys.number("hi", 0.0)?),
                _ if x.data.dtype().is_float() => {
                    return Err(refuse!("histogram: of --lo and --hi one is given; floats need both"));
                }
                _ => op.range(keys.number("lo", 0.0)?, keys.number("hi", bins as f64)?),
            }
        }
    }
    .variant(call.variant);
    let counts = Operand::Result(vec![op.bins()]);
    Ok(with_type!(x.data, job(op, vec![Operand::Given(x), counts])))
}

fn scan(mut call: Call<'_>) -> Result<Job, Failure> {
    let [x] = call.take()?;
    let (rows, n) = match x.shape[..] {
        [n] => (1, n),
        [rows, n] => (rows, n),
        _ => {
            return Err(refuse!(
                "scan: x is {}; it must be an array or a matrix, whose rows are scanned",
                x.describe()
            ));
        }
    };
    let variant = call.variant;
    match x.data.dtype() {
        DType::F32 => scan_as::<f32>(call.keys, rows, n, variant, x),
        DType::F16 => scan_as::<f16>(call.keys, rows, n, variant, x),
        DType::I32 => scan_as::<i32>(call.keys, rows, n, variant, x),
        DType::U32 => scan_as::<u32>(call.keys, rows, n, variant, x),
        other => Err(refuse!("scan: x is of {other}; scans take f32, f16, i32 or u32")),
    }
}

fn scan_as<T: Element>(keys: &Keys, rows: usize, n: usize, variant: &str, x: Array) -> Result<Job, Failure>
where
    Sum: Reducer<T, Output = T>,
    Prod: Reducer<T, Output = T>,
    Min: Reducer<T, Output = T>,
    Max: Reducer<T, Output = T>,
{
    let op = keys.choice("op", &["sum", "prod", "min", "max"])?;
    let (exclusive, reverse) = (keys.flag("exclusive"), keys.flag("reverse"));
    let y = Operand::Result(x.shape.clone());
    let operands = vec![Operand::Given(x), y];
    macro_rules! scan {
        ($op:ident) => {
            job::<T>(
                Scan::rows($op, rows, n).exclusive(exclusive).reverse(reverse).variant(variant),
                operands,
            )
        };
    }
    Ok(match op {
        "sum" => scan!(Sum),
        "prod" => scan!(Prod),
        "min" => scan!(Min),
        _ => scan!(Max),
    })
}

fn segmented_scan(mut call: Call<'_>) -> Result<Job, Failure> {
    let [x, heads] = call.take()?;
    let [n] = x.dims("segmented-scan: x")?;
    if heads.shape != [n] || heads.data.dtype() != DType::U32 {
        return Err(refuse!(
            "segmented-scan: heads is {}; it must be u32 {}",
            heads.describe(),
            shape_text(&[n])
        ));
    }
    let variant = call.variant;
    match x.data.dtype() {
        DType::F32 => segmented_scan_as::<f32>(call.keys, n, variant, x, heads),
        DType::F16 => segmented_scan_as::<f16>(call.keys, n, variant, x, heads),
        DType::I32 => segmented_scan_as::<i32>(call.keys, n, variant, x, heads),
        DType::U32 => segmented_scan_as::<u32>(call.keys, n, variant, x, heads),
        other => Err(refuse!("segmented-scan: x is of {other}; scans take f32, f16, i32 or u32")),
    }
}

fn segmented_scan_as<T: Element>(
    keys: &Keys,
    n: usize,
    variant: &str,
    x: Array,
    heads: Array,
) -> Result<Job, Failure>
where
    Sum: Reducer<T, Output = T>,
    Prod: Reducer<T, Output = T>,
    Min: Reducer<T, Output = T>,
    Max: Reducer<T, Output = T>,
{
    let op = keys.choice("op", &["sum", "prod", "min", "max"])?;
    let exclusive = keys.flag("exclusive");
    let y = Operand::Result(x.shape.clone());
    let operands = vec![Operand::Given(x), Operand::Given(heads), y];
    macro_rules! scan {
        ($op:ident) => {
            job::<T>(SegmentedScan::new($op, n).exclusive(exclusive).variant(variant), operands)
        };
    }
    Ok(match op {
        "sum" => scan!(Sum),
        "prod" => scan!(Prod),
        "min" => scan!(Min),
        _ => scan!(Max),
    })
}

fn gemm(mut call: Call<'_>) -> Result<Job, Failure> {
    let c = if call.inputs.len() == 3 { call.inputs.pop() } else { None };
    let [a, b] = call.take()?;
    let keys = call.keys;
    let precision = match keys.choice("precision", &["strict", "split", "tensor", "fast"])? {
        "split" | "fast" => Precision::Split,
        "tensor" => Precision::Tensor,
        _ => Precision::Strict,
    };
    let (trans_a, trans_b) = (keys.flag("trans-a"), keys.flag("trans-b"));
    let mut dims_a = a.dims::<2>("gemm: a")?;
    let mut dims_b = b.dims::<2>("gemm: b")?;
    if trans_a {
        dims_a.reverse();
    }
    if trans_b {
        dims_b.reverse();
    }
    let ([m, k], [k_b, n]) = (dims_a, dims_b);
    if k != k_b {
        return Err(refuse!(
            "gemm: op(a) is {}, op(b) is {}; the columns of the first must be the rows of the second",
            shape_text(&dims_a),
            shape_text(&dims_b)
        ));
    }
    same_type("gemm", ("a", &a), ("b", &b))?;
    let beta = keys.number("beta", 0f32)?;
    let mut op = Gemm::new(m, n, k)
        .alpha(keys.number("alpha", 1f32)?)
        .beta(beta)
        .trans_a(trans_a)
        .trans_b(trans_b)
        .precision(precision)
        .variant(call.variant);
    let activation = keys.choice("activation", &Activation::ALL.map(Activation::name))?;
    if let Some(activation) = Activation::from_name(activation) {
        op = op.activation(activation);
    }
    let bias = keys.path("bias").map(|path| npy::read(&path)).transpose()?;
    if let Some(bias) = &bias {
        same_type("gemm", ("a", &a), ("bias", bias))?;
        if bias.shape != [n] {
            return Err(refuse!("gemm: bias is {}; it must be {}", bias.describe(), shape_text(&[n])));
        }
    }
    let updated = match c {
        Some(c) if c.shape != [m, n] => {
            return Err(refuse!("gemm: c is {}; it must be {}", c.describe(), shape_text(&[m, n])));
        }
        Some(c) => {
            same_type("gemm", ("a", &a), ("c", &c))?;
            Operand::Updated(c)
        }
        None if beta != 0.0 => return Err(refuse!("gemm: --beta {beta} needs c, the third input")),
        None => Operand::Result(vec![m, n]),
    };
    let floats = a.data.dtype();
    let mut operands = vec![Operand::Given(a), Operand::Given(b)];
    let with_bias = bias.is_some();
    operands.extend(bias.map(Operand::Given));
    operands.push(updated);
    match (floats, with_bias) {
        (DType::F32, false) => Ok(job::<f32>(op, operands)),
        (DType::F32, true) => Ok(job::<f32>(op.with_bias(), operands)),
        (DType::F16, false) => Ok(job::<f16>(op, operands)),
        (DType::F16, true) => Ok(job::<f16>(op.with_bias(), operands)),
        (other, _) => Err(refuse!("gemm: the matrices are of {other}; the product takes f32 or f16")),
    }
}

fn gemm_batched(mut call: Call<'_>) -> Result<Job, Failure> {
    let [a, b] = call.take()?;
    let (trans_a, trans_b) = (call.keys.flag("trans-a"), call.keys.flag("trans-b"));
    let mut dims_a = a.dims::<3>("gemm-batched: a")?;
    let mut dims_b = b.dims::<3>("gemm-batched: b")?;
    if trans_a {
        dims_a.swap(1, 2);
    }
    if trans_b {
        dims_b.swap(1, 2);
    }
    let ([batch, m, k], [batch_b, k_b, n]) = (dims_a, dims_b);
    if batch != batch_b || k != k_b {
        return Err(refuse!(
            "gemm-batched: op(a) is {}, op(b) is {}; they must hold as many matrices, and the columns of the first \
             must be the rows of the second",
            shape_text(&dims_a),
            shape_text(&dims_b)
        ));
    }
    same_type("gemm-batched", ("a", &a), ("b", &b))?;
    let op = GemmBatched::new(batch, m, n, k)
        .alpha(call.keys.number("alpha", 1f32)?)
        .trans_a(trans_a)
        .trans_b(trans_b)
        .variant(call.variant);
    let floats = a.data.dtype();
    let operands = vec![Operand::Given(a), Operand::Given(b), Operand::Result(vec![batch, m, n])];
    match floats {
        DType::F32 => Ok(job::<f32>(op, operands)),
        DType::F16 => Ok(job::<f16>(op, operands)),
        other => Err(refuse!("gemm-batched: the matrices are of {other}; the product takes f32 or f16")),
    }
}

fn gemv(mut call: Call<'_>) -> Result<Job, Failure> {
    let [a, x] = call.take()?;
    let trans = call.keys.flag("trans");
    let [m, k] = a.dims("gemv: a")?;
    let (terms, outputs) = if trans { (m, k) } else { (k, m) };
    if x.shape != [terms] {
        let side = if trans { "row" } else { "column" };
        return Err(refuse!(
            "gemv: a is {}, x is {}; x must be {}, an element for each {side} of a",
            a.describe(),
            x.describe(),
            shape_text(&[terms])
        ));
    }
    same_type("gemv", ("a", &a), ("x", &x))?;
    let op = Gemv::new(m, k).trans(trans).alpha(call.keys.number("alpha", 1f32)?).variant(call.variant);
    let floats = a.data.dtype();
    let operands = vec![Operand::Given(a), Operand::Given(x), Operand::Result(vec![outputs])];
    match floats {
        DType::F32 => Ok(job::<f32>(op, operands)),
        DType::F16 => Ok(job::<f16>(op, operands)),
        other => Err(refuse!("gemv: the matrix is of {other}; the product takes f32 or f16")),
    }
}

/// Zeros that a product is added to.
fn zeros(name: &str, shape: &[usize]) -> Result<Array, Failure> {
    let n = shape.iter().fold(1usize, |n, extent| n.saturating_mul(*extent));
    room_for(&format!("{name} is {}", shape_text(shape)), n, 4)?;
    Ok(Array { shape: shape.to_vec(), data: vec![0f32; n].into() })
}

/// A sparse matrix of a Matrix Market file; entries at one position are added up.
pub(crate) fn read_matrix(path: &Path) -> Result<Csr, Failure> {
    let (file, _) = open_file(path)?;
    let matrix = matrix_market::read(BufReader::with_capacity(1 << 20, file));
    let triplets = match matrix.map_err(|e| Failure::from(e).at(path))? {
        Matrix::Sparse(triplets) => triplets,
        Matrix::Dense(_) => {
            return Err(Failure::bad_input("an array file; a coordinate file is wanted").at(path));
        }
    };
    let Triplets { rows, cols, values, .. } = &triplets;
    let words = rows.saturating_add(*cols).saturating_add(2 * values.len());
    // The matrix, the same in another format, and the lists of both.
    room_for(&format!("a matrix of {rows} x {cols}"), words, 4 * 4).map_err(|e| e.at(path))?;
    Csr::from_triplets(&triplets, Duplicates::Sum).map_err(|e| Failure::from(e).at(path))
}

fn spmv(mut call: Call<'_>) -> Result<Job, Failure> {
    let y = if call.inputs.len() == 2 { call.inputs.pop() } else { None };
    let [x] = call.take()?;
    let a = std::mem::take(&mut call.matrix);
    for (name, array, len) in [("x", Some(&x), a.cols), ("y", y.as_ref(), a.rows)] {
        if let Some(array) = array
            && (array.shape != [len] || array.data.dtype() != DType::F32)
        {
            let wanted = shape_text(&[len]);
            let (rows, cols) = (a.rows, a.cols);
            let given = array.describe();
            return Err(refuse!(
                "spmv: A is {rows} x {cols}, {name} is {given}; {name} must be {wanted} of f32"
            ));
        }
    }
    let beta = call.keys.number("beta", 0f32)?;
    let alpha = call.keys.number("alpha", 1f32)?;
    // Without a file, y begins as zeros.
    let y = y.map_or_else(|| zeros("spmv: y", &[a.rows]), Ok)?;
    let variant = call.variant.to_owned();
    in_format(a, &call, [x, y], move |stored, seen, operands| {
        let op = Spmv::new(stored).alpha(alpha).beta(beta).variant(&variant);
        job::<f32>(if let Some(seen) = seen { op.seen(seen) } else { op }, operands)
    })
}

fn spmm(mut call: Call<'_>) -> Result<Job, Failure> {
    let [b] = call.take()?;
    let a = std::mem::take(&mut call.matrix);
    let (rows, cols) = (a.rows, a.cols);
    let n = match *b.shape {
        [terms, n] if terms == cols && b.data.dtype() == DType::F32 => n,
        _ => {
            let given = b.describe();
            return Err(refuse!(
                "spmm: A is {rows} x {cols}, b is {given}; b must be a matrix of {cols} rows, of f32"
            ));
        }
    };
    let variant = call.variant.to_owned();
    let c = zeros("spmm: c", &[rows, n])?;
    in_format(a, &call, [b, c], move |stored, _, operands| {
        job::<f32>(Spmm::new(stored, n).variant(&variant), operands)
    })
}

/// The job of a matrix in the format that is asked for, an input and a result; where none is, a device chooses it. `of`
/// makes a job of how the matrix is stored and what was seen of it.
fn in_format(
    a: Csr,
    call: &Call<'_>,
    [input, result]: [Array; 2],
    of: impl Fn(Stored, Option<&Statistics>, Vec<Operand>) -> Job + 'static,
) -> Result<Job, Failure> {
    let formats = ["auto", "coo", "csr", "csc", "ell", "jds", "hybrid", "sell"];
    // A variant that is asked for says of what format the matrix must be.
    let format = match (call.keys.choice("format", &formats)?, call.variant.split('-').next()) {
        ("auto", Some(of_variant)) => of_variant,
        (format, _) => format,
    };
    let of = move |matrix: &HostMatrix, seen: Option<&Statistics>, others: Vec<Operand>| {
        let (stored, lists) = lists_of(matrix)?;
        Ok(of(stored, seen, lists.into_iter().map(Operand::Given).chain(others).collect()))
    };
    let others = vec![Operand::Given(input), Operand::Updated(result)];
    if let Some(target) = Target::named(format) {
        let seen = a.analyse();
        return of(&reference::spconvert(&HostMatrix::Csr(a), target)?, Some(&seen), others);
    }
    let any = of(&HostMatrix::Csr(a.clone()), None, others)?;
    let suited = move |mut any: Job, matrix: &HostMatrix, seen: &Statistics| {
        let others = any.operands.split_off(any.operands.len() - 2);
        of(matrix, Some(seen), others)
    };
    Ok(Job { before: Some(Before::Suit(a, Box::new(suited))), ..any })
}

/// What a device will do, as far as it is known before: to compressed columns all lists are as long as they are now.
fn spconvert(call: Call<'_>) -> Result<Job, Failure> {
    let formats = ["csr", "coo", "csc", "ell", "hybrid", "jds", "sell"];
    let through = call.keys.choice("through", &formats)?;
    let stored = call.matrix.stored()?;
    let op = Spconvert::new(stored, Stored { format: Format::Csc, ..stored }).variant(call.variant);
    let before = Target::named(through).map(|target| Before::Convert(call.matrix, target));
    Ok(Job { before, ..job::<f32>(op, vec![]) })
}

/// How a matrix is stored, and its lists.
fn lists_of(matrix: &impl SparseMatrix) -> Result<(Stored, Vec<Array>), Failure> {
    let array = |list: List<'_>| match list {
        List::Indices(list) => Array { shape: vec![list.len()], data: list.to_vec().into() },
        List::Values(list) => Array { shape: vec![list.len()], data: list.to_vec().into() },
    };
    Ok((matrix.stored()?, matrix.lists().into_iter().map(array).collect()))
}

fn transpose(mut call: Call<'_>) -> Result<Job, Failure> {
    let [x] = call.take()?;
    let [m, n] = x.dims("transpose: x")?;
    let op = Transpose::new(m, n).variant(call.variant);
    Ok(with_type!(x.data, job(op, vec![Operand::Given(x), Operand::Result(vec![n, m])])))
}

/// The input, the weights and extents of the filter, and the boundary of a stencil.
#[allow(clippy::type_complexity, reason = "the parts of a call, taken apart at once")]
fn stencil<const N: usize>(
    op: &str,
    call: &mut Call<'_>,
) -> Result<(Array, [usize; N], Vec<f32>, [usize; N], Boundary), Failure> {
    let [x, filter] = call.take()?;
    let extents = x.dims(&format!("{op}: x"))?;
    let shape = filter.dims(&format!("{op}: the filter"))?;
    let text = filter.describe();
    let Data::F32(weights) = filter.data else {
        return Err(refuse!("{op}: the filter is {text}; it must be of f32"));
    };
    let boundary = call.keys.choice("boundary", &Boundary::ALL.map(Boundary::name))?;
    Ok((x, extents, weights, shape, Boundary::from_name(boundary).unwrap_or_default()))
}

/// One input to an output of its shape.
fn same_size(x: Array) -> Vec<Operand> {
    let shape = x.shape.clone();
    vec![Operand::Given(x), Operand::Result(shape)]
}

fn conv1d(mut call: Call<'_>) -> Result<Job, Failure> {
    let (x, [n], weights, _, boundary) = stencil::<1>("conv1d", &mut call)?;
    let op = Conv1d::new(n, &weights).boundary(boundary).variant(call.variant);
    Ok(with_type!(x.data, job(op, same_size(x))))
}

fn conv2d(mut call: Call<'_>) -> Result<Job, Failure> {
    let (x, [h, w], weights, shape, boundary) = stencil("conv2d", &mut call)?;
    let op = Conv2d::new(h, w, shape, &weights).boundary(boundary).variant(call.variant);
    Ok(with_type!(x.data, job(op, same_size(x))))
}

fn conv3d(mut call: Call<'_>) -> Result<Job, Failure> {
    let (x, extents, weights, shape, boundary) = stencil("conv3d", &mut call)?;
    let op = Conv3d::new(extents, shape, &weights).boundary(boundary).variant(call.variant);
    Ok(with_type!(x.data, job(op, same_size(x))))
}

/// The input, an image of one channel or, in the layout that the key says, of several.
fn image(op: &str, call: &mut Call<'_>) -> Result<(Array, Image), Failure> {
    let [x] = call.take()?;
    let planar = call.keys.choice("layout", &Layout::ALL.map(Layout::name))? == Layout::Planar.name();
    let image = match x.shape[..] {
        [h, w] => Image::grey(h, w),
        [channels, h, w] if planar => Image::new(h, w, channels).planar(),
        [h, w, channels] => Image::new(h, w, channels),
        _ => {
            return Err(refuse!(
                "{op}: x is {}; an image has 2 dimensions, or 3 with its channels",
                x.describe()
            ));
        }
    };
    Ok((x, image))
}

fn grey(mut call: Call<'_>) -> Result<Job, Failure> {
    let (x, image) = image("grey", &mut call)?;
    let weights = call.keys.choice("weights", &GreyWeights::ALL.map(GreyWeights::name))?;
    let op =
        Grey::new(image).weights(GreyWeights::from_name(weights).unwrap_or_default()).variant(call.variant);
    let result = Operand::Result(vec![image.h, image.w]);
    Ok(with_type!(x.data, job(op, vec![Operand::Given(x), result])))
}

fn blur(mut call: Call<'_>) -> Result<Job, Failure> {
    let (x, image) = image("blur", &mut call)?;
    let divide = call.keys.choice("divide", &Divide::ALL.map(Divide::name))?;
    let op = Blur::new(image, call.keys.number("radius", 1)?)
        .divide(Divide::from_name(divide).unwrap_or_default())
        .variant(call.variant);
    Ok(with_type!(x.data, job(op, same_size(x))))
}

fn gaussian(mut call: Call<'_>) -> Result<Job, Failure> {
    let (x, image) = image("gaussian", &mut call)?;
    let names = [Boundary::Clamp, Boundary::Zero, Boundary::Wrap].map(Boundary::name);
    let boundary = Boundary::from_name(call.keys.choice("boundary", &names)?).unwrap_or_default();
    let mut op =
        Gaussian::new(image, call.keys.number("sigma", 1.0)?).boundary(boundary).variant(call.variant);
    if call.keys.flag("radius") {
        op = op.radius(call.keys.number("radius", 0)?);
    }
    Ok(with_type!(x.data, job(op, same_size(x))))
}

fn sobel(mut call: Call<'_>) -> Result<Job, Failure> {
    let (x, image) = image("sobel", &mut call)?;
    let gradient = call.keys.choice("gradient", &Gradient::ALL.map(Gradient::name))?;
    let op =
        Sobel::new(image).gradient(Gradient::from_name(gradient).unwrap_or_default()).variant(call.variant);
    Ok(with_type!(x.data, job(op, same_size(x))))
}

fn equalize(mut call: Call<'_>) -> Result<Job, Failure> {
    let (x, image) = image("equalize", &mut call)?;
    let op = Equalize::new(image)
        .range(call.keys.number("lo", 0.0)?, call.keys.number("hi", 1.0)?)
        .variant(call.variant);
    Ok(with_type!(x.data, job(op, same_size(x))))
}

/// Rows along the last axis.
fn rows_of(op: &str, x: &Array) -> Result<(usize, usize), Failure> {
    let Some((&n, rest)) = x.shape.split_last() else {
        return Err(refuse!("{op}: x is {}; it has no last axis", x.describe()));
    };
    Ok((rest.iter().product(), n))
}

/// The layer of inputs of these shapes, of f32.
fn layer(op: &str, keys: &Keys, shape: [usize; 4], [m, _, r, s]: [usize; 4]) -> Result<Conv, Failure> {
    let layer = Conv::new(shape, m, [r, s])
        .stride(keys.pair("stride", [1, 1])?)
        .pad(keys.pair("pad", [0, 0])?)
        .dilation(keys.pair("dilation", [1, 1])?)
        .groups(keys.number("groups", 1)?);
    layer.output_shape().map_err(|e| {
        let text = e.to_string();
        refuse!("{op}: {}", text.strip_prefix("conv: ").unwrap_or(&text))
    })?;
    Ok(layer)
}

/// Whether an input has the shape that it must have, of f32.
fn expect_shape(op: &str, name: &str, array: &Array, shape: &[usize]) -> Result<(), Failure> {
    if array.shape == shape && array.data.dtype() == DType::F32 {
        return Ok(());
    }
    Err(refuse!("{op}: {name} is {}; it must be {} of f32", array.describe(), shape_text(shape)))
}

/// The activation that is asked for; none if the key is not given.
fn activation(keys: &Keys) -> Result<Activation, Failure> {
    let name = keys.choice("activation", &Activation::ALL.map(Activation::name))?;
    Ok(Activation::from_name(name).unwrap_or_default())
}

fn conv(mut call: Call<'_>) -> Result<Job, Failure> {
    let bias = if call.inputs.len() == 3 { call.inputs.pop() } else { None };
    let [x, w] = call.take()?;
    let (shape, weights) = (x.dims::<4>("conv: x")?, w.dims::<4>("conv: w")?);
    let op = layer("conv", call.keys, shape, weights)?;
    expect_shape("conv", "x", &x, &shape)?;
    expect_shape("conv", "w", &w, &op.weights_shape())?;
    let y = Operand::Result(op.output_shape()?.to_vec());
    let op = op.activation(activation(call.keys)?).variant(call.variant);
    let Some(bias) = bias else {
        return Ok(job::<f32>(op, vec![Operand::Given(x), Operand::Given(w), y]));
    };
    expect_shape("conv", "bias", &bias, &weights[..1])?;
    Ok(job::<f32>(op.with_bias(), vec![Operand::Given(x), Operand::Given(w), Operand::Given(bias), y]))
}

fn conv_transpose(mut call: Call<'_>) -> Result<Job, Failure> {
    let bias = if call.inputs.len() == 3 { call.inputs.pop() } else { None };
    let [x, w] = call.take()?;
    let keys = call.keys;
    let (shape, [_, m, r, s]) = (x.dims::<4>("conv-transpose: x")?, w.dims::<4>("conv-transpose: w")?);
    let groups: usize = keys.number("groups", 1)?;
    let filters = m.saturating_mul(groups);
    let op = ConvTranspose::new(shape, filters, [r, s])
        .stride(keys.pair("stride", [1, 1])?)
        .pad(keys.pair("pad", [0, 0])?)
        .dilation(keys.pair("dilation", [1, 1])?)
        .groups(groups)
        .output_padding(keys.pair("output-padding", [0, 0])?)
        .activation(activation(keys)?)
        .variant(call.variant);
    let y = Operand::Result(op.output_shape()?.to_vec());
    expect_shape("conv-transpose", "x", &x, &shape)?;
    expect_shape("conv-transpose", "w", &w, &op.weights_shape())?;
    let Some(bias) = bias else {
        return Ok(job::<f32>(op, vec![Operand::Given(x), Operand::Given(w), y]));
    };
    expect_shape("conv-transpose", "bias", &bias, &[filters])?;
    Ok(job::<f32>(op.with_bias(), vec![Operand::Given(x), Operand::Given(w), Operand::Given(bias), y]))
}

fn conv_backward_data(mut call: Call<'_>) -> Result<Job, Failure> {
    let [dy, w] = call.take()?;
    let shape = call.keys.extents("shape", "N,C,H,W")?;
    let op = layer("conv-backward-data", call.keys, shape, w.dims("conv-backward-data: w")?)?;
    expect_shape("conv-backward-data", "dy", &dy, &op.output_shape()?)?;
    expect_shape("conv-backward-data", "w", &w, &op.weights_shape())?;
    let dx = Operand::Result(shape.to_vec());
    let op = ConvBackwardData::new(&op).variant(call.variant);
    Ok(job::<f32>(op, vec![Operand::Given(dy), Operand::Given(w), dx]))
}

fn conv_backward_weights(mut call: Call<'_>) -> Result<Job, Failure> {
    let [x, dy] = call.take()?;
    let weights = call.keys.extents("shape", "M,C/groups,R,S")?;
    let shape = x.dims("conv-backward-weights: x")?;
    let op = layer("conv-backward-weights", call.keys, shape, weights)?;
    if op.weights_shape() != weights {
        return Err(refuse!(
            "conv-backward-weights: --shape says weights of {}; of this x they are {}",
            shape_text(&weights),
            shape_text(&op.weights_shape())
        ));
    }
    expect_shape("conv-backward-weights", "x", &x, &shape)?;
    expect_shape("conv-backward-weights", "dy", &dy, &op.output_shape()?)?;
    let dw = Operand::Result(weights.to_vec());
    let op = ConvBackwardWeights::new(&op).variant(call.variant);
    Ok(job::<f32>(op, vec![Operand::Given(x), Operand::Given(dy), dw]))
}

/// The job for f32 or f16.
macro_rules! job_on_floats {
    ($op:literal, $dtype:expr, $desc:expr, $operands:expr) => {
        match $dtype {
            DType::F32 => Ok(job::<f32>($desc, $operands)),
            DType::F16 => Ok(job::<f16>($desc, $operands)),
            other => Err(refuse!("{}: x is of {other}; the op takes f32 or f16", $op)),
        }
    };
}

fn softmax(name: &str, mut call: Call<'_>) -> Result<Job, Failure> {
    let [x] = call.take()?;
    let (rows, n) = rows_of(name, &x)?;
    let (dtype, y) = (x.data.dtype(), Operand::Result(x.shape.clone()));
    let operands = vec![Operand::Given(x), y];
    if name == "softmax" {
        job_on_floats!("softmax", dtype, Softmax::new(rows, n).variant(call.variant), operands)
    } else {
        job_on_floats!("log-softmax", dtype, LogSoftmax::new(rows, n).variant(call.variant), operands)
    }
}

fn rope(mut call: Call<'_>) -> Result<Job, Failure> {
    let positions = if call.inputs.len() == 4 { call.inputs.pop() } else { None };
    let [x, cos, sin] = call.take()?;
    let [batch, heads, tokens, size] = x.dims("rope: x")?;
    let [rows, pairs] = cos.dims("rope: cos")?;
    for table in [&cos, &sin] {
        if table.shape != cos.shape || table.data.dtype() != DType::F32 {
            return Err(refuse!(
                "rope: cos is {}, sin is {}; both must be of f32 and of one shape",
                cos.describe(),
                sin.describe()
            ));
        }
    }
    let op = Rope::new(batch, heads, tokens, size).rotary(2 * pairs);
    let op = op.interleaved(call.keys.flag("interleaved")).variant(call.variant);
    let (dtype, y) = (x.data.dtype(), Operand::Result(x.shape.clone()));
    let mut operands = vec![Operand::Given(x), Operand::Given(cos), Operand::Given(sin)];
    let Some(positions) = positions else {
        operands.push(y);
        return job_on_floats!("rope", dtype, op.tables(rows), operands);
    };
    if positions.shape != [batch, tokens] || positions.data.dtype() != DType::U32 {
        return Err(refuse!(
            "rope: positions is {}; it must be {} of u32",
            positions.describe(),
            shape_text(&[batch, tokens])
        ));
    }
    operands.extend([Operand::Given(positions), y]);
    job_on_floats!("rope", dtype, op.with_positions(rows), operands)
}

fn norm(name: &str, mut call: Call<'_>) -> Result<Job, Failure> {
    let beta = if call.inputs.len() == 3 { call.inputs.pop() } else { None };
    let [x, gamma] = call.take()?;
    let (rows, n) = rows_of(name, &x)?;
    for (what, of_columns) in [("gamma", Some(&gamma)), ("beta", beta.as_ref())] {
        let Some(of_columns) = of_columns else { continue };
        if of_columns.shape != [n] {
            return Err(refuse!(
                "{name}: {what} is {}; it must be {}, an element for each column",
                of_columns.describe(),
                shape_text(&[n])
            ));
        }
        same_type(name, ("x", &x), (what, of_columns))?;
    }
    let eps = call.keys.number("eps", 1e-5f32)?;
    let (dtype, y) = (x.data.dtype(), Operand::Result(x.shape.clone()));
    let shifted = beta.is_some();
    let mut operands = vec![Operand::Given(x), Operand::Given(gamma)];
    operands.extend(beta.map(Operand::Given));
    operands.push(y);
    macro_rules! of {
        ($op:literal, $norm:ident) => {{
            let norm = $norm::new(rows, n).eps(eps).variant(call.variant);
            if shifted {
                job_on_floats!($op, dtype, norm.with_beta(), operands)
            } else {
                job_on_floats!($op, dtype, norm, operands)
            }
        }};
    }
    if name == "layer-norm" { of!("layer-norm", LayerNorm) } else { of!("rms-norm", RmsNorm) }
}

fn gemm_int8(mut call: Call<'_>) -> Result<Job, Failure> {
    let [a, b] = call.take()?;
    let ([m, k], [k_b, n]) = (a.dims::<2>("gemm-int8: a")?, b.dims::<2>("gemm-int8: b")?);
    if k != k_b || a.data.dtype() != DType::I8 || b.data.dtype() != DType::I8 {
        return Err(refuse!(
            "gemm-int8: a is {}, b is {}; both must be of i8, and the columns of the first the rows of the second",
            a.describe(),
            b.describe()
        ));
    }
    let op = GemmInt8::new(m, n, k).variant(call.variant);
    Ok(job::<i32>(op, vec![Operand::Given(a), Operand::Given(b), Operand::Result(vec![m, n])]))
}

fn cast(mut call: Call<'_>) -> Result<Job, Failure> {
    let [x] = call.take()?;
    let op = Cast::new(x.data.len()).variant(call.variant);
    let (dtype, y) = (x.data.dtype(), Operand::Result(x.shape.clone()));
    job_on_floats!("cast", dtype, op, vec![Operand::Given(x), y])
}

fn quantize(mut call: Call<'_>) -> Result<Job, Failure> {
    let [x] = call.take()?;
    let (rows, n) = rows_of("quantize", &x)?;
    let group = call.keys.number("group", 64)?;
    // The axes before the last.
    let mut of_scale = x.shape[..x.shape.len() - 1].to_vec();
    let scales = match call.keys.choice("per", &["row", "tensor", "group"])? {
        "tensor" => {
            of_scale.clear();
            Scales::Tensor
        }
        "group" => {
            of_scale.push(n.checked_div(group).unwrap_or(0));
            Scales::Group(group)
        }
        _ => Scales::Row,
    };
    let (dtype, bytes) = (x.data.dtype(), Operand::Result(x.shape.clone()));
    let operands = vec![Operand::Given(x), bytes, Operand::Result(of_scale)];
    if call.keys.choice("kind", &["int8", "fp8"])? == "fp8" {
        let op = Quantize::<u8>::new(rows, n).scales(scales).variant(call.variant);
        job_on_floats!("quantize", dtype, op, operands)
    } else {
        let op = Quantize::<i8>::new(rows, n).scales(scales).variant(call.variant);
        job_on_floats!("quantize", dtype, op, operands)
    }
}

fn dequantize(mut call: Call<'_>) -> Result<Job, Failure> {
    let [x, scale] = call.take()?;
    let (rows, n) = rows_of("dequantize", &x)?;
    let (kind, dtype) = match call.keys.choice("kind", &["int8", "fp8"])? {
        "fp8" => ("fp8", DType::U8),
        _ => ("int8", DType::I8),
    };
    if x.data.dtype() != dtype || scale.data.dtype() != DType::F32 {
        return Err(refuse!(
            "dequantize: q is {}, scale is {}; {kind} is of {dtype}, and scales are of f32",
            x.describe(),
            scale.describe()
        ));
    }
    let before = &x.shape[..x.shape.len() - 1];
    let scales = match scale.shape.split_last() {
        _ if scale.shape == before => Scales::Row,
        None => Scales::Tensor,
        Some((&groups, rest)) if rest == before && groups > 0 && n % groups == 0 => Scales::Group(n / groups),
        _ => {
            return Err(refuse!(
                "dequantize: q is {}, scale is {}; it must be {} for rows, () for all, or {} and the number of groups of \
                 a row",
                x.describe(),
                scale.describe(),
                shape_text(before),
                shape_text(before)
            ));
        }
    };
    let y = Operand::Result(x.shape.clone());
    let operands = vec![Operand::Given(x), Operand::Given(scale), y];
    Ok(match kind {
        "fp8" => job::<f32>(Dequantize::<u8>::new(rows, n).scales(scales).variant(call.variant), operands),
        _ => job::<f32>(Dequantize::<i8>::new(rows, n).scales(scales).variant(call.variant), operands),
    })
}

/// The kind of a pooling, and the extents of its windows.
fn pooling(keys: &Keys) -> Result<(PoolKind, [usize; 2]), Failure> {
    let weights = keys.path("weights").map(|path| npy::read(&path)).transpose()?;
    let kind = keys.choice("kind", &["max", "avg", "l2", "weighted"])?;
    let mut kernel = keys.pair("kernel", [2, 2])?;
    let kind = match (kind, weights) {
        ("weighted", Some(weights)) => {
            let extents = weights.dims::<2>("pool: weights")?;
            if keys.flag("kernel") && extents != kernel {
                return Err(refuse!(
                    "pool: weights are {}, --kernel says {}; they must agree",
                    weights.describe(),
                    shape_text(&kernel)
                ));
            }
            kernel = extents;
            PoolKind::Weighted(
                with_data!(&weights.data, v => v.iter().map(|w| w.to_f64() as f32).collect::<Vec<_>>()),
            )
        }
        ("weighted", None) => return Err(refuse!("pool: --kind weighted needs --weights FILE")),
        (_, Some(_)) => return Err(refuse!("pool: --weights belongs to --kind weighted")),
        ("avg", None) => PoolKind::Average,
        ("l2", None) => PoolKind::L2,
        _ => PoolKind::Max,
    };
    Ok((kind, kernel))
}

fn pool(mut call: Call<'_>) -> Result<Job, Failure> {
    let [x] = call.take()?;
    let keys = call.keys;
    let shape = x.dims::<4>("pool: x")?;
    let (kind, kernel) = pooling(keys)?;
    let op = Pool2d::new(kind, shape, kernel)
        .stride(keys.pair("stride", kernel)?)
        .pad(keys.pair("pad", [0, 0])?)
        .count_include_pad(keys.flag("count-include-pad"))
        .activation(activation(keys)?)
        .variant(call.variant);
    let bias = keys.path("bias").map(|path| npy::read(&path)).transpose()?;
    if let Some(bias) = &bias {
        same_type("pool", ("x", &x), ("bias", bias))?;
        if bias.shape != [shape[1]] {
            return Err(refuse!(
                "pool: bias is {}; it must be {}",
                bias.describe(),
                shape_text(&shape[1..2])
            ));
        }
    }
    let y = Operand::Result(op.output_shape()?.to_vec());
    let (dtype, biased) = (x.data.dtype(), bias.is_some());
    let mut operands = vec![Operand::Given(x)];
    operands.extend(bias.map(Operand::Given));
    operands.push(y);
    if biased {
        job_on_floats!("pool", dtype, op.with_bias(), operands)
    } else {
        job_on_floats!("pool", dtype, op, operands)
    }
}

fn pool_backward(mut call: Call<'_>) -> Result<Job, Failure> {
    let [x, dy] = call.take()?;
    let keys = call.keys;
    let shape = x.dims::<4>("pool-backward: x")?;
    same_type("pool-backward", ("x", &x), ("dy", &dy))?;
    let (kind, kernel) = pooling(keys)?;
    let op = Pool2dBackward::new(kind, shape, kernel)
        .stride(keys.pair("stride", kernel)?)
        .pad(keys.pair("pad", [0, 0])?)
        .count_include_pad(keys.flag("count-include-pad"))
        .variant(call.variant);
    let windows = op.dy_shape()?;
    if dy.shape != windows {
        return Err(refuse!("pool-backward: dy is {}; it must be {}", dy.describe(), shape_text(&windows)));
    }
    let (dtype, dx) = (x.data.dtype(), Operand::Result(x.shape.clone()));
    job_on_floats!("pool-backward", dtype, op, vec![Operand::Given(x), Operand::Given(dy), dx])
}

/// Refuses an operand that is not of this shape and of f32.
fn of_floats(op: &str, name: &str, x: &Array, shape: &[usize]) -> Result<(), Failure> {
    if x.shape == shape && x.data.dtype() == DType::F32 {
        return Ok(());
    }
    Err(refuse!("{op}: {name} is {}; it must be {} of f32", x.describe(), shape_text(shape)))
}

fn batch_norm(mut call: Call<'_>) -> Result<Job, Failure> {
    let [x, mean, variance, gamma, beta] = call.take()?;
    let shape = x.dims::<4>("batch-norm: x")?;
    of_floats("batch-norm", "x", &x, &shape)?;
    let mut operands = vec![Operand::Given(x)];
    for (name, values) in [("mean", mean), ("variance", variance), ("gamma", gamma), ("beta", beta)] {
        of_floats("batch-norm", name, &values, &shape[1..2])?;
        operands.push(Operand::Given(values));
    }
    operands.push(Operand::Result(shape.to_vec()));
    let op = BatchNorm::new(shape)
        .eps(call.keys.number("eps", 1e-5f32)?)
        .activation(activation(call.keys)?)
        .variant(call.variant);
    Ok(job::<f32>(op, operands))
}

fn cross_entropy(mut call: Call<'_>) -> Result<Job, Failure> {
    let [logits, labels] = call.take()?;
    let [rows, classes] = logits.dims("cross-entropy: logits")?;
    of_floats("cross-entropy", "logits", &logits, &[rows, classes])?;
    if labels.shape != [rows] || labels.data.dtype() != DType::U32 {
        return Err(refuse!(
            "cross-entropy: labels is {}; it must be {} of u32",
            labels.describe(),
            shape_text(&[rows])
        ));
    }
    let op = CrossEntropy::new(rows, classes).variant(call.variant).with_gradient();
    let results = [vec![rows], vec![], vec![rows, classes]].map(Operand::Result);
    let operands = [Operand::Given(logits), Operand::Given(labels)].into_iter().chain(results);
    Ok(job::<f32>(op, operands.collect()))
}

fn squared_error(mut call: Call<'_>) -> Result<Job, Failure> {
    let [x, target] = call.take()?;
    let shape = x.shape.clone();
    of_floats("squared-error", "x", &x, &shape)?;
    of_floats("squared-error", "target", &target, &shape)?;
    let op = SquaredError::new(shape.iter().product()).variant(call.variant).with_gradient();
    let results = [vec![], shape].map(Operand::Result);
    let operands = [Operand::Given(x), Operand::Given(target)].into_iter().chain(results);
    Ok(job::<f32>(op, operands.collect()))
}

fn activation_backward(mut call: Call<'_>) -> Result<Job, Failure> {
    let [value, dy] = call.take()?;
    same_shape("activation-backward", &value, &dy)?;
    let op =
        ActivationBackward::new(activation(call.keys)?, value.shape.iter().product()).variant(call.variant);
    let (dtype, dx) = (value.data.dtype(), Operand::Result(value.shape.clone()));
    job_on_floats!("activation-backward", dtype, op, vec![Operand::Given(value), Operand::Given(dy), dx])
}

fn bias_backward(mut call: Call<'_>) -> Result<Job, Failure> {
    let [dy] = call.take()?;
    let shape = dy.shape.clone();
    let [n, channels, ref plane @ ..] = shape[..] else {
        return Err(refuse!("bias-backward: dy is {}; it must be (N,C) or (N,C,H,W)", dy.describe()));
    };
    of_floats("bias-backward", "dy", &dy, &shape)?;
    let op = BiasBackward::new(n, channels, plane.iter().product()).variant(call.variant);
    Ok(job::<f32>(op, vec![Operand::Given(dy), Operand::Result(vec![channels])]))
}

fn softmax_backward(name: &str, mut call: Call<'_>) -> Result<Job, Failure> {
    let [y, dy] = call.take()?;
    let ((rows, n), shape) = (rows_of(name, &y)?, y.shape.clone());
    of_floats(name, "y", &y, &shape)?;
    of_floats(name, "dy", &dy, &shape)?;
    let operands = vec![Operand::Given(y), Operand::Given(dy), Operand::Result(shape)];
    if name == "softmax-backward" {
        Ok(job::<f32>(SoftmaxBackward::new(rows, n).variant(call.variant), operands))
    } else {
        Ok(job::<f32>(LogSoftmaxBackward::new(rows, n).variant(call.variant), operands))
    }
}

fn norm_backward(name: &str, mut call: Call<'_>) -> Result<Job, Failure> {
    let [x, gamma, dy] = call.take()?;
    let ((rows, n), shape) = (rows_of(name, &x)?, x.shape.clone());
    of_floats(name, "x", &x, &shape)?;
    of_floats(name, "gamma", &gamma, &[n])?;
    of_floats(name, "dy", &dy, &shape)?;
    let eps = call.keys.number("eps", 1e-5f32)?;
    let mut operands: Vec<_> = [x, gamma, dy].map(Operand::Given).into();
    operands.extend([shape, vec![n]].map(Operand::Result));
    if name == "rms-norm-backward" {
        return Ok(job::<f32>(RmsNormBackward::new(rows, n).eps(eps).variant(call.variant), operands));
    }
    operands.push(Operand::Result(vec![n]));
    Ok(job::<f32>(LayerNormBackward::new(rows, n).eps(eps).variant(call.variant), operands))
}

/// Parameters, gradients and what an optimizer keeps, all of one shape.
fn parameters(op: &str, call: &mut Call<'_>, names: &[&str]) -> Result<(usize, Vec<Array>), Failure> {
    let all = std::mem::take(&mut call.inputs);
    let shape = all.first().map(|x| x.shape.clone()).unwrap_or_default();
    for (name, values) in names.iter().zip(&all) {
        of_floats(op, name, values, &shape)?;
    }
    Ok((shape.iter().product(), all))
}

fn sgd(mut call: Call<'_>) -> Result<Job, Failure> {
    let (n, all) = parameters("sgd", &mut call, &["parameters", "gradients", "velocity"])?;
    let op = Sgd::new(n, call.keys.number("rate", 0.01f32)?)
        .decay(call.keys.number("decay", 0f32)?)
        .nesterov(call.keys.flag("nesterov"))
        .variant(call.variant);
    let momentum = call.keys.number("momentum", 0f32)?;
    let fast = all.len() == 3;
    if momentum != 0.0 && !fast {
        return Err(refuse!("sgd: --momentum {momentum} needs velocity, the third input"));
    }
    let updated = |(i, x)| if i == 1 { Operand::Given(x) } else { Operand::Updated(x) };
    let operands = all.into_iter().enumerate().map(updated).collect();
    Ok(if fast { job::<f32>(op.with_momentum(momentum), operands) } else { job::<f32>(op, operands) })
}

fn adam(mut call: Call<'_>) -> Result<Job, Failure> {
    let fullness = call.inputs.pop();
    let (n, mut all) = parameters("adam", &mut call, &["parameters", "gradients", "first", "second"])?;
    if let Some(fullness) = fullness {
        of_floats("adam", "fullness", &fullness, &[2])?;
        all.push(fullness);
    }
    let keys = call.keys;
    let op = Adam::new(n, keys.number("rate", 1e-3f32)?)
        .betas(keys.number("beta1", 0.9)?, keys.number("beta2", 0.999)?)
        .eps(keys.number("eps", 1e-8f32)?)
        .decay(keys.number("decay", 0f32)?)
        .decoupled(keys.flag("decoupled"))
        .variant(call.variant);
    let updated = |(i, x)| if i == 1 { Operand::Given(x) } else { Operand::Updated(x) };
    Ok(job::<f32>(op, all.into_iter().enumerate().map(updated).collect()))
}

fn sort(mut call: Call<'_>) -> Result<Job, Failure> {
    let values = if call.inputs.len() == 2 { call.inputs.pop() } else { None };
    let [keys] = call.take()?;
    let [n] = keys.dims("sort: keys")?;
    let op = RadixSort::new(n).descending(call.keys.flag("descending")).variant(call.variant);
    let sorted = Operand::Result(vec![n]);
    let Some(values) = values else {
        return Ok(with_type!(keys.data, job(op, vec![Operand::Given(keys), sorted])));
    };
    if values.shape != keys.shape || values.data.dtype() != DType::U32 {
        return Err(refuse!(
            "sort: values are {}; they must be {} of u32, one for each key",
            values.describe(),
            shape_text(&keys.shape)
        ));
    }
    let moved = Operand::Result(vec![n]);
    let op = op.with_values();
    Ok(with_type!(keys.data, job(op, vec![Operand::Given(keys), Operand::Given(values), sorted, moved])))
}

fn top_k(mut call: Call<'_>) -> Result<Job, Failure> {
    let [x] = call.take()?;
    let [n] = x.dims("top-k: x")?;
    if !call.keys.flag("k") {
        return Err(refuse!("top-k: --k is missing; it says how many elements, from 1 to {n}"));
    }
    let k = call.keys.number("k", 1)?;
    let op = TopK::new(n, k).smallest(call.keys.flag("smallest")).variant(call.variant);
    let result = || Operand::Result(vec![k]);
    Ok(with_type!(x.data, job(op, vec![Operand::Given(x), result(), result()])))
}

fn gather_rows(mut call: Call<'_>) -> Result<Job, Failure> {
    let [table, indices] = call.take()?;
    let [rows, n] = table.dims("gather-rows: table")?;
    if indices.data.dtype() != DType::U32 {
        return Err(refuse!("gather-rows: indices is {}; they must be of u32", indices.describe()));
    }
    let op = GatherRows::new(rows, n, indices.data.len()).variant(call.variant);
    let y = Operand::Result([indices.shape.as_slice(), &[n]].concat());
    fn of<T: Element>(op: GatherRows, operands: Vec<Operand>) -> Job
    where
        GatherRows: Op<T>,
    {
        job::<T>(op, operands)
    }
    Ok(with_type!(&table.data, of(op, vec![Operand::Given(table), Operand::Given(indices), y])))
}

fn mean_pool(mut call: Call<'_>) -> Result<Job, Failure> {
    let [x, lengths] = call.take()?;
    let [batch, tokens, width] = x.dims("mean-pool: x")?;
    if lengths.shape != [batch] || lengths.data.dtype() != DType::U32 {
        return Err(refuse!(
            "mean-pool: lengths is {}; it must be {} of u32, one for each sequence",
            lengths.describe(),
            shape_text(&[batch])
        ));
    }
    let op = MeanPool::new(batch, tokens, width).variant(call.variant);
    let op = if call.keys.flag("normalized") { op.normalized() } else { op };
    let dtype = x.data.dtype();
    let operands = vec![Operand::Given(x), Operand::Given(lengths), Operand::Result(vec![batch, width])];
    job_on_floats!("mean-pool", dtype, op, operands)
}

fn attention(mut call: Call<'_>) -> Result<Job, Failure> {
    let mask = if call.inputs.len() == 4 { call.inputs.pop() } else { None };
    let [q, k, v] = call.take()?;
    let [b, h, t, d] = q.dims("attention: q")?;
    let [_, g, s, _] = k.dims("attention: k")?;
    let dtype = q.data.dtype();
    for (name, x) in [("k", &k), ("v", &v)] {
        if x.shape != [b, g, s, d] {
            return Err(refuse!(
                "attention: {name} is {}; with q of {} it must be (B, G, S, D), here {}",
                x.describe(),
                shape_text(&q.shape),
                shape_text(&[b, g, s, d])
            ));
        }
        same_type("attention", ("q", &q), (name, x))?;
    }
    let mut op = Attention::new(b, h, g, t, s, d).variant(call.variant);
    if call.keys.flag("causal") {
        op = op.causal();
    }
    if call.keys.flag("window") {
        op = op.window(call.keys.number("window", 0)?);
    }
    if call.keys.flag("scale") {
        op = op.scale(call.keys.number("scale", 1f32)?);
    }
    let own = if dtype == DType::F16 { "f16" } else { "f32" };
    let kv_name = call.keys.text("kv-type").unwrap_or_else(|| own.to_owned());
    let kv = *KvType::ALL.iter().find(|kv| kv.name() == kv_name).ok_or_else(|| {
        refuse!("attention: --kv-type {kv_name}; there are: {}", KvType::ALL.map(KvType::name).join(", "))
    })?;
    op = op.kv(kv);
    let [mut keys, mut values] = [as_floats(k.data)?, as_floats(v.data)?];
    let mut table = None;
    if call.keys.flag("page") {
        let tokens: usize = call.keys.number("page", 16)?;
        if !(16..=256).contains(&tokens) {
            return Err(refuse!("attention: --page {tokens}; pages have 16 to 256 tokens"));
        }
        let each = s.div_ceil(tokens);
        op = op.paged(tokens, b.saturating_mul(each));
        let count = b.saturating_mul(each);
        room_for("attention: the pages", count, 4)?;
        let pages = shuffled(count);
        let rows = pages.len().saturating_mul(g).saturating_mul(tokens);
        room_for("attention: the pages", rows.saturating_mul(d), 2 * 4)?;
        keys = in_pages(&keys, [b, g, s, d], tokens, &pages);
        values = in_pages(&values, [b, g, s, d], tokens, &pages);
        table = Some(Array { shape: vec![b, each], data: Data::U32(pages) });
    }
    let rows = keys.len() / d.max(1);
    let given = |data: Data| Operand::Given(Array { shape: vec![rows, d], data });
    let ((keys, mut scales), (values, of_values)) = (stored(kv, &keys, d), stored(kv, &values, d));
    scales.extend(of_values);
    let mut operands = vec![Operand::Given(q), given(keys), given(values)];
    if kv.is_scaled() {
        operands.push(Operand::Given(Array { shape: vec![2, rows], data: Data::F32(scales) }));
    }
    operands.extend(table.map(Operand::Given));
    if let Some(mask) = mask {
        expect_shape("attention", "mask", &mask, &[t, s])?;
        op = op.masked(1, 1);
        operands.push(Operand::Given(mask));
    }
    operands.push(Operand::Result(vec![b, h, t, d]));
    match dtype {
        DType::F32 => Ok(job::<f32>(op, operands)),
        DType::F16 => Ok(job::<f16>(op, operands)),
        other => Err(refuse!("attention: q is of {other}; the op takes f32 or f16")),
    }
}

fn as_floats(data: Data) -> Result<Vec<f32>, Failure> {
    match data {
        Data::F32(x) => Ok(x),
        Data::F16(x) => Ok(x.into_iter().map(f16::to_f32).collect()),
        other => Err(refuse!("attention: k and v are of {}; the op takes f32 or f16", other.dtype())),
    }
}

/// 0 to n - 1 in an order that is always the same, and none that a table could be without.
fn shuffled(n: usize) -> Vec<u32> {
    let mut pages: Vec<u32> = (0..n as u32).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for i in (1..n).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        pages.swap(i, (state >> 33) as usize % (i + 1));
    }
    pages
}

/// Rows of (B, G, S, D) in the pages that sequences have in turn: (pages, G, tokens, D).
fn in_pages(x: &[f32], [b, g, s, d]: [usize; 4], tokens: usize, pages: &[u32]) -> Vec<f32> {
    let each = s.div_ceil(tokens);
    let mut out = vec![0f32; pages.len() * g * tokens * d];
    for row in 0..b * g * s {
        let (pair, key) = (row / s, row % s);
        let page = pages[pair / g * each + key / tokens] as usize;
        let to = (page * g + pair % g) * tokens + key % tokens;
        out[to * d..][..d].copy_from_slice(&x[row * d..][..d]);
    }
    out
}

/// Rows of `d` elements as a cache has them, and the factors of quantised ones.
fn stored(kv: KvType, x: &[f32], d: usize) -> (Data, Vec<f32>) {
    let factors = |most: f32| -> Vec<f32> {
        let largest = |row: &[f32]| row.iter().fold(0f32, |most, x| most.max(x.abs()));
        x.chunks(d.max(1)).map(|row| largest(row) / most).collect()
    };
    let quotient = |i: usize, factors: &[f32]| {
        let factor = factors[i / d.max(1)];
        if factor == 0.0 { 0.0 } else { x[i] / factor }
    };
    match kv {
        KvType::F16 => (Data::F16(x.iter().map(|x| f16::from_f32(*x)).collect()), Vec::new()),
        KvType::Int8 => {
            let factors = factors(127.0);
            let code = |i| quotient(i, &factors).round_ties_even() as i8;
            (Data::I8((0..x.len()).map(code).collect()), factors)
        }
        KvType::Fp8 => {
            let factors = factors(448.0);
            let code = |i| reference::fp8_code(quotient(i, &factors));
            (Data::U8((0..x.len()).map(code).collect()), factors)
        }
        _ => (Data::F32(x.to_vec()), Vec::new()),
    }
}
