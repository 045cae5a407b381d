//! The encoder on the device.

use super::common::Failure;
use super::common::network::layers::{Building, HeldLinear, Linear, Storage};
use super::common::network::{Held, Network};
use super::weights::{EPS, Norm, Weights};
use tilework::attention::Attention;
use tilework::nn::MeanPool;
use tilework::{Activation, Axpy, Buffer, DType, Gather, Gpu, LayerNorm, Recorder};

/// Weight formats, and the minimum cosine with the f64 embedding. With f16, all intermediate values are f16, too.
pub(crate) const PRECISIONS: [(Storage, f64); 3] =
    [(Storage::F32, 0.99999), (Storage::F16, 0.999), (Storage::Int8, 0.99)];

struct HeldNorm {
    gamma: Held,
    beta: Held,
}

struct HeldLayer {
    /// Queries, keys and values, concatenated.
    projection: HeldLinear,
    attended: HeldLinear,
    attended_norm: HeldNorm,
    up: HeldLinear,
    down: HeldLinear,
    norm: HeldNorm,
}

/// Parameters on the device.
pub(crate) struct Encoder {
    gpu: Gpu,
    storage: Storage,
    dtype: DType,
    hidden: usize,
    heads: usize,
    pieces: usize,
    places: usize,
    /// Maximum inputs or outputs of a layer.
    widest: usize,
    words: Held,
    positions: Held,
    norm: HeldNorm,
    layers: Vec<HeldLayer>,
}

impl Encoder {
    /// Uploads the parameters; calls `progress` after each layer.
    pub(crate) fn new(
        gpu: &Gpu, weights: &Weights, storage: Storage, mut progress: impl FnMut(),
    ) -> Result<Self, Failure> {
        let dtype = if storage == Storage::F16 { DType::F16 } else { DType::F32 };
        let held = |values: &[f32]| Held::upload(gpu, dtype, values);
        let norm = |norm: &Norm| -> tilework::Result<HeldNorm> {
            Ok(HeldNorm { gamma: held(&norm.gamma)?, beta: held(&norm.beta)? })
        };
        let linear = |layer: &Linear| HeldLinear::new(gpu, layer, storage, dtype);
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
        let hidden = weights.hidden;
        Ok(Self {
            gpu: gpu.clone(),
            storage,
            dtype,
            hidden,
            heads: weights.heads,
            pieces: weights.pieces,
            places: weights.places,
            widest: weights.layers.iter().map(|layer| layer.up.outputs).fold(3 * hidden, usize::max),
            words: held(&weights.words)?,
            positions: held(&weights.positions)?,
            norm: norm(&weights.norm)?,
            layers,
        })
    }

    /// Plans a pass over `batch` sentences of at most `tokens` tokens.
    pub(crate) fn pass(&self, batch: usize, tokens: usize) -> Result<Pass, Failure> {
        let Self { gpu, hidden, heads, dtype, .. } = self;
        let (rows, size) = (batch * tokens, hidden / heads);
        let alloc = |n: usize| Held::alloc(gpu, *dtype, n);
        let ids = gpu.alloc_zeroed::<u32>(rows)?;
        let lengths = gpu.alloc_zeroed::<u32>(batch)?;
        let embeddings = gpu.alloc::<f32>(batch * hidden)?;
        let (held_ids, held_lengths) = (Held::from(ids.clone()), Held::from(lengths.clone()));
        let places: Vec<u32> = (0..rows).map(|row| (row % tokens) as u32).collect();
        let places = Held::from(gpu.upload(&places)?);
        let order = Order::new(batch, tokens, *heads);
        let to_heads = Held::from(gpu.upload(&order.to_heads)?);
        let to_tokens = Held::from(gpu.upload(&order.to_tokens)?);

        let mut all = Building::new(gpu, *dtype, rows, self.storage, self.widest)?;
        let [x, y, attended, by_tokens] =
            [alloc(rows * hidden)?, alloc(rows * hidden)?, alloc(rows * hidden)?, alloc(rows * hidden)?];
        let wide = alloc(rows * self.widest)?;
        let by_heads = alloc(order.to_heads.len() * size)?;
        let norm = |all: &mut Building<'_>, norm: &HeldNorm, x: &Held, y: &Held| {
            let op = LayerNorm::new(rows, *hidden).eps(EPS).with_beta();
            all.floats(&op, &[x, &norm.gamma, &norm.beta, y])
        };

        all.floats(&Gather::new([self.pieces, *hidden], rows), &[&self.words, &held_ids, &x])?;
        all.floats(&Gather::new([self.places, *hidden], rows), &[&self.positions, &places, &y])?;
        all.floats(&Axpy::new(rows * hidden, 1.0), &[&x, &y])?;
        norm(&mut all, &self.norm, &y, &x)?;
        for layer in &self.layers {
            all.linear(&layer.projection, Activation::None, &x, &wide)?;
            let gather = Gather::new([rows * 3 * heads, size], order.to_heads.len());
            all.floats(&gather, &[&wide, &to_heads, &by_heads])?;
            let attention = Attention::new([batch, *heads, tokens, size], [*heads, tokens]).lengths();
            let [q, k, v] = [0, 1, 2].map(|third| (&by_heads, third * order.stride * size));
            let operands = [q, k, v, (&held_lengths, 0), (&attended, 0)];
            all.network.add_floats(gpu, *dtype, &attention, &operands)?;
            let gather = Gather::new([rows * heads, size], rows * heads);
            all.floats(&gather, &[&attended, &to_tokens, &by_tokens])?;
            all.linear_added(&layer.attended, &by_tokens, &x)?;
            norm(&mut all, &layer.attended_norm, &x, &y)?;
            all.linear(&layer.up, Activation::Gelu, &y, &wide)?;
            all.linear_added(&layer.down, &wide, &y)?;
            norm(&mut all, &layer.norm, &y, &x)?;
        }
        let pool = MeanPool::new([batch, tokens, *hidden]).normalized();
        all.floats(&pool, &[&x, &held_lengths, &embeddings.clone().into()])?;
        Ok(Pass { network: all.network, batch, tokens, hidden: *hidden, ids, lengths, embeddings })
    }
}

/// Concatenates layers with the same inputs.
fn stacked(layers: [&Linear; 3]) -> Linear {
    Linear {
        weight: layers.iter().flat_map(|layer| layer.weight.clone()).collect(),
        bias: layers.iter().flat_map(|layer| layer.bias.clone()).collect(),
        outputs: layers.iter().map(|layer| layer.outputs).sum(),
        inputs: layers[0].inputs,
    }
}

/// Permutations of rows between token order and head order.
struct Order {
    /// Takes rows (B T, q k v, H) to (q k v, B, H, T). Padding rows follow each third, so that the next can be bound.
    to_heads: Vec<u32>,
    /// Rows from one third to the next.
    stride: usize,
    /// Takes rows (B, H, T) to (B T, H).
    to_tokens: Vec<u32>,
}

impl Order {
    fn new(batch: usize, tokens: usize, heads: usize) -> Self {
        // Bindings begin at multiples of 256 bytes: 128 elements of 2 bytes.
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

/// Planned ops and buffers from sentences to embeddings.
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
    /// Uploads the tokens of at most `batch` sentences.
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

    /// Returns the embeddings of the sentences, each of norm 1.
    pub(crate) fn embed(&self, gpu: &Gpu, sentences: &[Vec<u32>]) -> tilework::Result<Vec<Vec<f32>>> {
        self.write(sentences)?;
        let mut rec = gpu.recorder();
        self.record(&mut rec)?;
        rec.submit()?;
        let rows = self.embeddings.read()?;
        Ok(rows.chunks(self.hidden).take(sentences.len()).map(<[f32]>::to_vec).collect())
    }
}
