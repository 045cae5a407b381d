//! Reads a BERT encoder's parameters from a safetensors file.

use super::common::Failure;
use super::common::network::layers::Linear;
use safetensors::tensor::{Dtype, SafeTensors};
use std::path::Path;

/// Factors and shifts of a layer norm.
pub(crate) struct Norm {
    pub(crate) gamma: Vec<f32>,
    pub(crate) beta: Vec<f32>,
}

pub(crate) struct Layer {
    pub(crate) query: Linear,
    pub(crate) key: Linear,
    pub(crate) value: Linear,
    pub(crate) attended: Linear,
    pub(crate) attended_norm: Norm,
    pub(crate) up: Linear,
    pub(crate) down: Linear,
    pub(crate) norm: Norm,
}

pub(crate) struct Weights {
    /// Elements of a token's vector.
    pub(crate) hidden: usize,
    pub(crate) heads: usize,
    /// Word pieces of the vocabulary, and the maximum tokens of a sentence.
    pub(crate) pieces: usize,
    pub(crate) places: usize,
    /// One row per piece, and one per position; positions include the only segment.
    pub(crate) words: Vec<f32>,
    pub(crate) positions: Vec<f32>,
    pub(crate) norm: Norm,
    pub(crate) layers: Vec<Layer>,
}

/// Epsilon of BERT's layer norms.
pub(crate) const EPS: f32 = 1e-12;

/// Maximum layers, which bounds the names looked up in a file.
const MAX_LAYERS: usize = 1000;

/// The tensors of a file, looked up by name and shape.
struct Tensors<'a>(SafeTensors<'a>);

impl Tensors<'_> {
    fn has(&self, name: &str) -> bool {
        self.0.tensor(name).is_ok()
    }

    /// Returns the two extents of a tensor.
    fn extents(&self, name: &str) -> Result<[usize; 2], Failure> {
        let Ok(tensor) = self.0.tensor(name) else {
            let all = self.0.names().len();
            return Err(Failure::bad_input(format!("has no tensor `{name}` among its {all}; is it a BERT encoder?")));
        };
        let extents = <[usize; 2]>::try_from(tensor.shape()).ok().filter(|e| e.iter().all(|n| *n > 0));
        extents.ok_or_else(|| {
            Failure::bad_input(format!("the tensor `{name}` is {:?}; it must have two extents", tensor.shape()))
        })
    }

    fn get(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, Failure> {
        let Ok(tensor) = self.0.tensor(name) else {
            return Err(Failure::bad_input(format!("has no tensor `{name}` of shape {shape:?}")));
        };
        if tensor.shape() != shape || tensor.dtype() != Dtype::F32 {
            let (found, dtype) = (tensor.shape(), tensor.dtype());
            let text = format!("the tensor `{name}` is {found:?} of {dtype:?}; the encoder needs {shape:?} of F32");
            return Err(Failure::bad_input(text));
        }
        let values: Vec<f32> =
            tensor.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        match values.iter().find(|x| !x.is_finite()) {
            Some(x) => Err(Failure::bad_input(format!("the tensor `{name}` holds {x}"))),
            None => Ok(values),
        }
    }

    fn linear(&self, name: &str, outputs: usize, inputs: usize) -> Result<Linear, Failure> {
        let weight = self.get(&format!("{name}.weight"), &[outputs, inputs])?;
        Ok(Linear { weight, bias: self.get(&format!("{name}.bias"), &[outputs])?, outputs, inputs })
    }

    fn norm(&self, name: &str, hidden: usize) -> Result<Norm, Failure> {
        let of = |part| self.get(&format!("{name}.LayerNorm.{part}"), &[hidden]);
        Ok(Norm { gamma: of("weight")?, beta: of("bias")? })
    }

    fn layer(&self, number: usize, hidden: usize) -> Result<Layer, Failure> {
        let name = |part: &str| format!("encoder.layer.{number}.{part}");
        let [inner, _] = self.extents(&name("intermediate.dense.weight"))?;
        Ok(Layer {
            query: self.linear(&name("attention.self.query"), hidden, hidden)?,
            key: self.linear(&name("attention.self.key"), hidden, hidden)?,
            value: self.linear(&name("attention.self.value"), hidden, hidden)?,
            attended: self.linear(&name("attention.output.dense"), hidden, hidden)?,
            attended_norm: self.norm(&name("attention.output"), hidden)?,
            up: self.linear(&name("intermediate.dense"), inner, hidden)?,
            down: self.linear(&name("output.dense"), hidden, inner)?,
            norm: self.norm(&name("output"), hidden)?,
        })
    }
}

impl Weights {
    /// Reads the parameters. The file must have all tensors of every layer, in their shapes; others, such as a pooler,
    /// are ignored.
    pub(crate) fn read(path: &Path, heads: usize) -> Result<Self, Failure> {
        let bytes = std::fs::read(path).map_err(|e| Failure::file(path, &e))?;
        let file = SafeTensors::deserialize(&bytes)
            .map_err(|e| Failure::bad_input(format!("is not a safetensors file: {e}")).at(path))?;
        Self::of(&Tensors(file), heads).map_err(|e| e.at(path))
    }

    fn of(tensors: &Tensors<'_>, heads: usize) -> Result<Self, Failure> {
        let of = |part: &str| format!("embeddings.{part}.weight");
        let [pieces, hidden] = tensors.extents(&of("word_embeddings"))?;
        let [places, _] = tensors.extents(&of("position_embeddings"))?;
        let [segments, _] = tensors.extents(&of("token_type_embeddings"))?;
        if heads == 0 || !hidden.is_multiple_of(heads) {
            return Err(Failure::bad_input(format!(
                "its vectors have {hidden} elements, not a multiple of {heads} heads (--heads)"
            )));
        }
        let words = tensors.get(&of("word_embeddings"), &[pieces, hidden])?;
        let mut positions = tensors.get(&of("position_embeddings"), &[places, hidden])?;
        let segment = tensors.get(&of("token_type_embeddings"), &[segments, hidden])?;
        for row in positions.chunks_mut(hidden) {
            row.iter_mut().zip(&segment).for_each(|(x, s)| *x += s);
        }
        let exists = |number: &usize| tensors.has(&format!("encoder.layer.{number}.attention.self.query.weight"));
        let count = (0..MAX_LAYERS).take_while(exists).count().max(1);
        let layers = (0..count).map(|number| tensors.layer(number, hidden)).collect::<Result<_, _>>()?;
        let norm = tensors.norm("embeddings", hidden)?;
        Ok(Self { hidden, heads, pieces, places, words, positions, norm, layers })
    }
}
