//! The encoder on the device.

use super::failure::Failure;
use super::network::{Held, Network};
use super::weights::{EPS, Linear, Norm, Weights};
use half::f16;
use tilework::attention::Attention;
use tilework::nn::{GatherRows, MeanPool};
use tilework::program::Op;
use tilework::{Activation, Axpy, Buffer, DType, Gemm, Gpu, LayerNorm, Precision, Recorder};

/// What is computed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbers {
    F32,
    /// Weights and everything between the ops of f16; sums of f32.
    F16,
    /// Weights of layers in bytes, a scale a row; what they are multiplied by is quantised token by token.
    Int8,
}

impl Numbers {
    pub(crate) const ALL: [Self; 3] = [Self::F32, Self::F16, Self::Int8];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Int8 => "int8",
        }
    }

    /// The least that an embedding's cosine with that of f64 may be.
    pub(crate) fn least_cosine(self) -> f64 {
        match self {
            Self::F32 => 0.99999,
            Self::F16 => 0.999,
            Self::Int8 => 0.99,
        }
    }

    /// Of what goes from op to op.
    fn dtype(self) -> DType {
        if self == Self::F16 { DType::F16 } else { DType::F32 }
    }
}

/// A fully connected layer on the device.
struct HeldLinear {
    weight: Held,
    bias: Held,
    outputs: usize,
    inputs: usize,
}

struct HeldNorm {
    gamma: Held,
    beta: Held,
}

struct HeldLayer {
    /// To queries, keys and values, one after another.
    projection: HeldLinear,
    attended: HeldLinear,
    attended_norm: HeldNorm,
    up: HeldLinear,
    down: HeldLinear,
    norm: HeldNorm,
}

/// The parameters on the device.
pub(crate) struct Encoder {
    gpu: Gpu,
    numbers: Numbers,
    hidden: usize,
    heads: usize,
    pieces: usize,
    places: usize,
    words: Held,
    positions: Held,
    norm: HeldNorm,
    layers: Vec<HeldLayer>,
}

impl Encoder {
    /// Uploads the parameters; `progress` hears of each layer.
    pub(crate) fn new(
        gpu: &Gpu,
        weights: &Weights,
        numbers: Numbers,
        mut progress: impl FnMut(),
    ) -> Result<Self, Failure> {
        let held = |values: &[f32]| Held::upload(gpu, numbers.dtype(), values);
        let norm = |norm: &Norm| -> tilework::Result<HeldNorm> {
            Ok(HeldNorm { gamma: held(&norm.gamma)?, beta: held(&norm.beta)? })
        };
        let linear = |layer: &Linear| -> tilework::Result<HeldLinear> {
            let (outputs, inputs) = (layer.outputs, layer.inputs);
            Ok(HeldLinear { weight: held(&layer.weight)?, bias: held(&layer.bias)?, outputs, inputs })
        };
        let mut layers = Vec::with_capacity(weights.layers.len());
        for layer in &weights.layers {
            layers.push(HeldLayer {
                projection: linear(&stacked([&layer.query, &layer.key, &layer.value]))?,
                attended: linear(&layer.attended)?,
                attended_norm: norm(&layer.attended_norm)?,
                up: linear(&layer.up)?,
                down: linear(&layer.down)?,
                norm: norm(&layer.norm)?,
            });
            progress();
        }
        Ok(Self {
            gpu: gpu.clone(),
            numbers,
            hidden: weights.hidden,
            heads: weights.heads,
            pieces: weights.pieces,
            places: weights.places,
            words: held(&weights.words)?,
            positions: held(&weights.positions)?,
            norm: norm(&weights.norm)?,
            layers,
        })
    }

    /// Everything for `batch` sentences of at most `tokens` tokens, planned once.
    pub(crate) fn pass(&self, batch: usize, tokens: usize) -> Result<Pass, Failure> {
        let Self { gpu, hidden, heads, .. } = self;
        let (rows, dtype, size) = (batch * tokens, self.numbers.dtype(), hidden / heads);
        let alloc = |n: usize| Held::alloc(gpu, dtype, n);
        let ids = gpu.alloc_zeroed::<u32>(rows)?;
        let lengths = gpu.alloc_zeroed::<u32>(batch)?;
        let embeddings = gpu.alloc::<f32>(batch * hidden)?;
        let (held_ids, held_lengths) = (Held::from(ids.clone()), Held::from(lengths.clone()));
        let places: Vec<u32> = (0..rows).map(|row| (row % tokens) as u32).collect();
        let places = Held::from(gpu.upload(&places)?);
        let split = Order::new(batch, tokens, *heads);
        let to_heads = Held::from(gpu.upload(&split.to_heads)?);
        let to_tokens = Held::from(gpu.upload(&split.to_tokens)?);

        let mut pass = Adding { encoder: self, rows, network: Network::default() };
        let [x, y] = [alloc(rows * hidden)?, alloc(rows * hidden)?];
        let projected = alloc(rows * 3 * hidden)?;
        let by_heads = alloc(split.to_heads.len() * size)?;
        let [attended, by_tokens] = [alloc(rows * hidden)?, alloc(rows * hidden)?];
        let inner = alloc(rows * self.layers.iter().map(|layer| layer.up.outputs).max().unwrap_or(0))?;

        pass.floats(&GatherRows::new(self.pieces, *hidden, rows), &[&self.words, &held_ids, &x])?;
        pass.floats(&GatherRows::new(self.places, *hidden, rows), &[&self.positions, &places, &y])?;
        pass.floats(&Axpy::new(rows * hidden, 1.0), &[&x, &y])?;
        pass.norm(&self.norm, &y, &x)?;
        let attention = Attention::new(batch, *heads, *heads, tokens, tokens, size).lengths();
        for layer in &self.layers {
            pass.linear(&layer.projection, Activation::None, &x, &projected)?;
            let heads_of_all = GatherRows::new(rows * 3 * heads, size, split.to_heads.len());
            pass.floats(&heads_of_all, &[&projected, &to_heads, &by_heads])?;
            let [q, k, v] = [0, 1, 2].map(|i| (&by_heads, i * split.stride * size));
            pass.network.add_floats(
                gpu,
                dtype,
                &attention,
                &[q, k, v, (&held_lengths, 0), (&attended, 0)],
            )?;
            let tokens_of_all = GatherRows::new(rows * heads, size, rows * heads);
            pass.floats(&tokens_of_all, &[&attended, &to_tokens, &by_tokens])?;
            pass.linear_added(&layer.attended, &by_tokens, &x)?;
            pass.norm(&layer.attended_norm, &x, &y)?;
            pass.linear(&layer.up, Activation::Gelu, &y, &inner)?;
            pass.linear_added(&layer.down, &inner, &y)?;
            pass.norm(&layer.norm, &y, &x)?;
        }
        let pool = MeanPool::new(batch, tokens, *hidden).normalized();
        pass.floats(&pool, &[&x, &held_lengths, &embeddings.clone().into()])?;
        Ok(Pass { network: pass.network, batch, tokens, hidden: *hidden, ids, lengths, embeddings })
    }
}

/// Layers with the same inputs as one.
fn stacked(layers: [&Linear; 3]) -> Linear {
    Linear {
        weight: layers.iter().flat_map(|layer| layer.weight.clone()).collect(),
        bias: layers.iter().flat_map(|layer| layer.bias.clone()).collect(),
        outputs: layers.iter().map(|layer| layer.outputs).sum(),
        inputs: layers[0].inputs,
    }
}

/// In which order rows of a head's elements lie, by tokens and by heads.
struct Order {
    /// Rows of (B T, q k v, H) in the order (q k v, B, H, T), with as many that do not exist behind each third that the
    /// next one begins where a device can bind it.
    to_heads: Vec<u32>,
    /// Rows from one third to the next.
    stride: usize,
    /// Rows of (B, H, T) in the order (B T, H).
    to_tokens: Vec<u32>,
}

impl Order {
    fn new(batch: usize, tokens: usize, heads: usize) -> Self {
        // Bindings begin at multiples of 256 bytes, of 128 elements of 2 bytes.
        let stride = (batch * heads * tokens).next_multiple_of(128);
        let mut to_heads = Vec::with_capacity(3 * stride);
        for third in 0..3 {
            for (b, h) in (0..batch).flat_map(|b| (0..heads).map(move |h| (b, h))) {
                to_heads.extend((0..tokens).map(|t| (((b * tokens + t) * 3 + third) * heads + h) as u32));
            }
            to_heads.resize((third + 1) * stride, u32::MAX);
        }
        let of = |(b, t, h): (usize, usize, usize)| ((b * heads + h) * tokens + t) as u32;
        let rows = (0..batch).flat_map(|b| (0..tokens).flat_map(move |t| (0..heads).map(move |h| (b, t, h))));
        Self { to_heads, stride, to_tokens: rows.map(of).collect() }
    }
}

/// A network in the making, of so many tokens in all.
struct Adding<'a> {
    encoder: &'a Encoder,
    rows: usize,
    network: Network,
}

impl Adding<'_> {
    fn floats(&mut self, op: &(impl Op<f32> + Op<f16>), operands: &[&Held]) -> tilework::Result<()> {
        let operands: Vec<_> = operands.iter().map(|held| (*held, 0)).collect();
        self.network.add_floats(&self.encoder.gpu, self.encoder.numbers.dtype(), op, &operands)
    }

    fn norm(&mut self, norm: &HeldNorm, x: &Held, y: &Held) -> tilework::Result<()> {
        let op = LayerNorm::new(self.rows, self.encoder.hidden).eps(EPS).with_beta();
        self.floats(&op, &[x, &norm.gamma, &norm.beta, y])
    }

    fn linear(
        &mut self,
        layer: &HeldLinear,
        activation: Activation,
        x: &Held,
        y: &Held,
    ) -> tilework::Result<()> {
        let gemm = Gemm::new(self.rows, layer.outputs, layer.inputs).trans_b(true).activation(activation);
        self.product(gemm, layer, x, y)
    }

    /// `y = x layer + y`.
    fn linear_added(&mut self, layer: &HeldLinear, x: &Held, y: &Held) -> tilework::Result<()> {
        let gemm = Gemm::new(self.rows, layer.outputs, layer.inputs).trans_b(true).beta(1.0);
        self.product(gemm, layer, x, y)
    }

    fn product(&mut self, gemm: Gemm, layer: &HeldLinear, x: &Held, y: &Held) -> tilework::Result<()> {
        // Tensor cores, where the device has them.
        let tensor = gemm.clone().precision(Precision::Tensor).with_bias();
        let profile = self.encoder.gpu.profile();
        let halves = self.encoder.numbers == Numbers::F16;
        let op = if halves && Op::<f16>::lower(&tensor, profile).is_ok() { tensor } else { gemm.with_bias() };
        self.floats(&op, &[x, &layer.weight, &layer.bias, y])
    }
}

/// Sentences to embeddings: planned ops and their buffers.
pub(crate) struct Pass {
    network: Network,
    batch: usize,
    tokens: usize,
    hidden: usize,
    ids: Buffer<u32>,
    lengths: Buffer<u32>,
    embeddings: Buffer<f32>,
}

impl Pass {
    /// Hands over the tokens of up to `batch` sentences.
    pub(crate) fn write(&self, sentences: &[Vec<u32>]) -> tilework::Result<()> {
        let (mut ids, mut lengths) = (vec![0; self.batch * self.tokens], vec![0; self.batch]);
        for (i, sentence) in sentences.iter().enumerate() {
            lengths[i] = sentence.len() as u32;
            ids[i * self.tokens..][..sentence.len()].copy_from_slice(sentence);
        }
        self.ids.slice(..)?.write(&ids)?;
        self.lengths.slice(..)?.write(&lengths)
    }

    /// Records all ops.
    pub(crate) fn record(&self, rec: &mut Recorder) -> tilework::Result<()> {
        self.network.record(rec)
    }

    /// The embeddings of these sentences, each of norm 1.
    pub(crate) fn embed(&self, gpu: &Gpu, sentences: &[Vec<u32>]) -> tilework::Result<Vec<Vec<f32>>> {
        self.write(sentences)?;
        let mut rec = gpu.recorder();
        self.record(&mut rec)?;
        rec.submit()?;
        let rows = self.embeddings.read()?;
        Ok(rows.chunks(self.hidden).take(sentences.len()).map(<[f32]>::to_vec).collect())
    }
}
