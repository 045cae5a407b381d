//! Reads the ONNX backend test cases: `NAME/model.onnx` with `NAME/test_data_set_N/{input,output}_I.pb`.
//!
//! Declares only the parts of ONNX's protobuf that single-operator cases need; unknown fields are skipped.
#![allow(dead_code)] // the reader of a format: not every field of it has a user

use std::fs;
use std::path::{Path, PathBuf};

use half::f16;
use prost::Message;

/// One conformance case: a model, and inputs with the outputs that it must give.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// The name of the case's folder, such as `test_softmax_axis_1`.
    pub name: String,
    /// The operators, in the order in which they run.
    pub nodes: Vec<Node>,
    /// Names of the graph's inputs, without those that an initializer gives.
    pub graph_inputs: Vec<String>,
    /// Names of the graph's outputs.
    pub graph_outputs: Vec<String>,
    /// Constants of the graph, by name.
    pub initializers: Vec<(String, Tensor)>,
    /// The version of ONNX's operator set, which decides what an operator means; 0 when there is only another set.
    pub opset: i64,
    /// The data; empty when the case is unsupported.
    pub sets: Vec<DataSet>,
    /// The reason that the data was not read: an input or output is not a tensor.
    pub unsupported: Option<String>,
}

/// One operator of a graph.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// The operator's name, such as `ReduceSum`.
    pub op_type: String,
    /// Names of its operands; an empty name is an optional operand left out.
    pub inputs: Vec<String>,
    /// Names of its results; an empty name is an unused result.
    pub outputs: Vec<String>,
    /// Its attributes, by name.
    pub attributes: Vec<(String, Attribute)>,
}

impl Node {
    /// The attribute called `name`, if the node has it.
    pub(crate) fn attribute(&self, name: &str) -> Option<&Attribute> {
        let found = self.attributes.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value)
    }
}

/// The value of an attribute.
#[derive(Debug, Clone)]
pub(crate) enum Attribute {
    Int(i64),
    Float(f32),
    Str(String),
    Ints(Vec<i64>),
    Floats(Vec<f32>),
    Tensor(Tensor),
    /// A graph, a list of strings, and the like.
    Other,
}

/// Inputs and expected outputs.
#[derive(Debug, Clone)]
pub(crate) struct DataSet {
    /// One tensor for each of the case's `graph_inputs`, in that order.
    pub inputs: Vec<Tensor>,
    /// One tensor for each of the case's `graph_outputs`, in that order.
    pub outputs: Vec<Tensor>,
}

/// A dense row-major tensor.
#[derive(Debug, Clone)]
pub(crate) struct Tensor {
    /// Its name in the graph.
    pub name: String,
    /// Its shape; empty for a scalar.
    pub dims: Vec<usize>,
    /// Its elements.
    pub data: TensorData,
}

/// Declares the types of elements, with Rust's names if there are any.
macro_rules! tensor_data {
    ($($variant:ident($ty:ty), $name:literal;)*) => {
        /// The elements of a tensor.
        #[derive(Debug, Clone, PartialEq)]
        pub(crate) enum TensorData {
            $($variant(Vec<$ty>),)*
            /// A type that tilework does not use, by ONNX's number; its elements are not read.
            Other(i32),
        }

        impl TensorData {
            /// The number of elements; `None` when they were not read.
            pub(crate) fn len(&self) -> Option<usize> {
                match self {
                    $(Self::$variant(v) => Some(v.len()),)*
                    Self::Other(_) => None,
                }
            }

            /// The name of the elements' type, Rust's if it has one.
            pub(crate) fn type_name(&self) -> String {
                match self {
                    $(Self::$variant(_) => $name.into(),)*
                    Self::Other(4) => "u16".into(),
                    Self::Other(5) => "i16".into(),
                    Self::Other(8) => "string".into(),
                    Self::Other(16) => "bf16".into(),
                    Self::Other(number) => format!("type {number}"),
                }
            }
        }
    };
}
tensor_data! {
    F32(f32), "f32";
    F16(f16), "f16";
    F64(f64), "f64";
    I32(i32), "i32";
    I64(i64), "i64";
    U32(u32), "u32";
    U64(u64), "u64";
    I8(i8), "i8";
    U8(u8), "u8";
    Bool(bool), "bool";
    F8(u8), "f8";
}

/// Reads every case under `dir`, sorted by name. The first malformed file is the error, by its path.
pub(crate) fn load_cases(dir: &Path) -> Result<Vec<Case>, String> {
    let mut folders = entries(dir)?;
    folders.retain(|folder| folder.join("model.onnx").is_file());
    folders.sort();
    folders.iter().map(|folder| load_case(folder)).collect()
}

fn load_case(folder: &Path) -> Result<Case, String> {
    let path = folder.join("model.onnx");
    let in_model = |e: String| format!("{}: {e}", path.display());
    let model: ModelProto = decode(&path)?;
    let graph = model.graph.ok_or_else(|| in_model("no graph".into()))?;
    let is_default = |o: &&OperatorSetIdProto| o.domain.is_empty() || o.domain == "ai.onnx";
    let opset = model.opset_import.iter().find(is_default);
    let mut initializers = Vec::new();
    for proto in graph.initializer {
        initializers.push((proto.name.clone(), tensor(proto).map_err(in_model)?));
    }
    // Old models list their initializers among the inputs too; no file gives those.
    let mut inputs = graph.input;
    inputs.retain(|input| initializers.iter().all(|(name, _)| *name != input.name));

    let mut values = inputs.iter().chain(&graph.output);
    let other = values.find(|value| !value.is_tensor());
    let nodes: Result<_, _> = graph.node.into_iter().map(node).collect();
    let name = folder.file_name().unwrap_or_default();
    let mut case = Case {
        name: name.to_string_lossy().into_owned(),
        nodes: nodes.map_err(in_model)?,
        unsupported: other.map(|value| format!("`{}` is no dense tensor", value.name)),
        graph_inputs: inputs.into_iter().map(|value| value.name).collect(),
        graph_outputs: graph.output.into_iter().map(|value| value.name).collect(),
        initializers,
        opset: opset.map_or(0, |o| o.version),
        sets: Vec::new(),
    };
    if case.unsupported.is_none() {
        let mut sets = entries(folder)?;
        sets.retain(|set| set.is_dir());
        sets.sort();
        for set in sets {
            let inputs = load_tensors(&set, "input", case.graph_inputs.len())?;
            let outputs = load_tensors(&set, "output", case.graph_outputs.len())?;
            case.sets.push(DataSet { inputs, outputs });
        }
    }
    Ok(case)
}

/// Reads `KIND_0.pb`, `KIND_1.pb`, ... of a data set: one for each value of the graph.
fn load_tensors(set: &Path, kind: &str, count: usize) -> Result<Vec<Tensor>, String> {
    let read = |i| {
        let path = set.join(format!("{kind}_{i}.pb"));
        tensor(decode(&path)?).map_err(|e| format!("{}: {e}", path.display()))
    };
    (0..count).map(read).collect()
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let read = |entry: std::io::Result<fs::DirEntry>| entry.map(|e| e.path());
    let paths = fs::read_dir(dir).and_then(|entries| entries.map(read).collect());
    paths.map_err(|e| format!("{}: {e}", dir.display()))
}

fn decode<M: Message + Default>(path: &Path) -> Result<M, String> {
    let bytes = fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    M::decode(bytes.as_slice()).map_err(|e| format!("{}: {e}", path.display()))
}

fn node(proto: NodeProto) -> Result<Node, String> {
    let attributes: Result<_, _> = proto.attribute.into_iter().map(attribute).collect();
    Ok(Node { op_type: proto.op_type, inputs: proto.input, outputs: proto.output, attributes: attributes? })
}

fn attribute(proto: AttributeProto) -> Result<(String, Attribute), String> {
    let value = match (proto.kind, proto.t) {
        (1, _) => Attribute::Float(proto.f),
        (2, _) => Attribute::Int(proto.i),
        (3, _) => Attribute::Str(String::from_utf8_lossy(&proto.s).into_owned()),
        (4, Some(t)) => Attribute::Tensor(tensor(t)?),
        (6, _) => Attribute::Floats(proto.floats),
        (7, _) => Attribute::Ints(proto.ints),
        _ => Attribute::Other,
    };
    Ok((proto.name, value))
}

/// Elements lie either in `raw_data`, little-endian, or in the typed field that ONNX assigns to their type.
fn tensor(p: TensorProto) -> Result<Tensor, String> {
    let (raw, ints, wide) = (p.raw_data.as_deref(), &p.int32_data, &p.uint64_data);
    let data = match p.data_type {
        1 => TensorData::F32(elements(raw, f32::from_le_bytes, &p.float_data, |x| x)?),
        2 => TensorData::U8(elements(raw, u8::from_le_bytes, ints, |x| x as u8)?),
        3 => TensorData::I8(elements(raw, i8::from_le_bytes, ints, |x| x as i8)?),
        6 => TensorData::I32(elements(raw, i32::from_le_bytes, ints, |x| x)?),
        7 => TensorData::I64(elements(raw, i64::from_le_bytes, &p.int64_data, |x| x)?),
        9 => TensorData::Bool(elements(raw, |[b]| b != 0, ints, |x| x != 0)?),
        10 => {
            let from_bits = |x| f16::from_bits(x as u16);
            TensorData::F16(elements(raw, f16::from_le_bytes, ints, from_bits)?)
        }
        11 => TensorData::F64(elements(raw, f64::from_le_bytes, &p.double_data, |x| x)?),
        12 => TensorData::U32(elements(raw, u32::from_le_bytes, wide, |x| x as u32)?),
        17 => TensorData::F8(elements(raw, u8::from_le_bytes, ints, |x| x as u8)?),
        13 => TensorData::U64(elements(raw, u64::from_le_bytes, wide, |x| x)?),
        other => TensorData::Other(other),
    };
    let mut dims = Vec::new();
    for &size in &p.dims {
        let negative = |_| format!("tensor `{}` has the size {size}", p.name);
        dims.push(usize::try_from(size).map_err(negative)?);
    }
    let product = |total: usize, &size: &usize| total.checked_mul(size);
    if let Some(found) = data.len()
        && dims.iter().try_fold(1, product) != Some(found)
    {
        let name = &p.name;
        return Err(format!("tensor `{name}` of shape {dims:?} holds {found} elements"));
    }
    Ok(Tensor { name: p.name, dims, data })
}

fn elements<const N: usize, T, U: Copy>(
    raw: Option<&[u8]>, from_raw: impl Fn([u8; N]) -> T, typed: &[U], from_typed: impl Fn(U) -> T,
) -> Result<Vec<T>, String> {
    let Some(raw) = raw else {
        return Ok(typed.iter().map(|&x| from_typed(x)).collect());
    };
    let (chunks, rest) = raw.as_chunks::<N>();
    if !rest.is_empty() {
        let found = raw.len();
        return Err(format!("{found} bytes of raw data are no multiple of {N}"));
    }
    Ok(chunks.iter().map(|&bytes| from_raw(bytes)).collect())
}

// The messages of onnx.proto, cut to the fields used above.

#[derive(Clone, PartialEq, Message)]
struct ModelProto {
    #[prost(message, optional, tag = "7")]
    graph: Option<GraphProto>,
    #[prost(message, repeated, tag = "8")]
    opset_import: Vec<OperatorSetIdProto>,
}

#[derive(Clone, PartialEq, Message)]
struct OperatorSetIdProto {
    #[prost(string, tag = "1")]
    domain: String,
    #[prost(int64, tag = "2")]
    version: i64,
}

#[derive(Clone, PartialEq, Message)]
struct GraphProto {
    #[prost(message, repeated, tag = "1")]
    node: Vec<NodeProto>,
    #[prost(message, repeated, tag = "5")]
    initializer: Vec<TensorProto>,
    #[prost(message, repeated, tag = "11")]
    input: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "12")]
    output: Vec<ValueInfoProto>,
}

#[derive(Clone, PartialEq, Message)]
struct ValueInfoProto {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    ty: Option<TypeProto>,
}

impl ValueInfoProto {
    fn is_tensor(&self) -> bool {
        self.ty.as_ref().is_some_and(|ty| ty.tensor.is_some())
    }
}

#[derive(Clone, PartialEq, Message)]
struct TypeProto {
    #[prost(bytes = "vec", optional, tag = "1")]
    tensor: Option<Vec<u8>>, // a message whose presence is all that matters
}

#[derive(Clone, PartialEq, Message)]
struct NodeProto {
    #[prost(string, repeated, tag = "1")]
    input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    output: Vec<String>,
    #[prost(string, tag = "4")]
    op_type: String,
    #[prost(message, repeated, tag = "5")]
    attribute: Vec<AttributeProto>,
}

#[derive(Clone, PartialEq, Message)]
struct AttributeProto {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(float, tag = "2")]
    f: f32,
    #[prost(int64, tag = "3")]
    i: i64,
    #[prost(bytes = "vec", tag = "4")]
    s: Vec<u8>,
    #[prost(message, optional, tag = "5")]
    t: Option<TensorProto>,
    #[prost(float, repeated, tag = "7")]
    floats: Vec<f32>,
    #[prost(int64, repeated, tag = "8")]
    ints: Vec<i64>,
    #[prost(int32, tag = "20")]
    kind: i32,
}

#[derive(Clone, PartialEq, Message)]
struct TensorProto {
    #[prost(int64, repeated, tag = "1")]
    dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    data_type: i32,
    #[prost(float, repeated, tag = "4")]
    float_data: Vec<f32>,
    #[prost(int32, repeated, tag = "5")]
    int32_data: Vec<i32>,
    #[prost(int64, repeated, tag = "7")]
    int64_data: Vec<i64>,
    #[prost(string, tag = "8")]
    name: String,
    #[prost(bytes = "vec", optional, tag = "9")]
    raw_data: Option<Vec<u8>>,
    #[prost(double, repeated, tag = "10")]
    double_data: Vec<f64>,
    #[prost(uint64, repeated, tag = "11")]
    uint64_data: Vec<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensor_reads_raw_and_typed_fields_alike() {
        let typed =
            TensorProto { dims: vec![2], data_type: 10, int32_data: vec![0x3c00, 0xc000], ..Default::default() };
        let raw = TensorProto { int32_data: vec![], raw_data: Some(vec![0x00, 0x3c, 0x00, 0xc0]), ..typed.clone() };
        let expected = TensorData::F16(vec![f16::from_f32(1.0), f16::from_f32(-2.0)]);
        assert_eq!(tensor(typed).unwrap().data, expected);
        assert_eq!(tensor(raw).unwrap().data, expected);
    }

    #[test]
    fn tensor_is_an_error_when_shape_and_data_disagree() {
        let short = TensorProto { dims: vec![3], data_type: 1, float_data: vec![1.0, 2.0], ..Default::default() };
        assert!(tensor(short).unwrap_err().contains("holds 2 elements"));
        let torn = TensorProto { dims: vec![1], data_type: 1, raw_data: Some(vec![0; 3]), ..Default::default() };
        assert!(tensor(torn).unwrap_err().contains("no multiple of 4"));
    }
}
