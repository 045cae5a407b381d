//! The decoder on the device, with its KV cache.

use super::common::network::layers::{Building, HeldLinear, Storage};
use super::common::network::{Held, Network};
use super::weights::{BYTES, Decoder, EPS, Shape};
use tilework::attention::{Attention, KvAppend, KvType};
use tilework::nn::{CrossEntropy, Rope};
use tilework::{Activation, Buffer, DType, Gather, Gpu, Result, RmsNorm};

struct HeldLayer {
    before: Held,
    projection: HeldLinear,
    attended: HeldLinear,
    between: Held,
    up: HeldLinear,
    down: HeldLinear,
}

/// Parameters on the device.
pub(crate) struct Model {
    gpu: Gpu,
    shape: Shape,
    storage: Storage,
    embeddings: Held,
    layers: Vec<HeldLayer>,
    norm: Held,
    head: HeldLinear,
}

/// Keys and values of each layer.
pub(crate) struct Cache {
    kv: KvType,
    layers: Vec<[Held; 3]>,
}

impl Model {
    pub(crate) fn new(gpu: &Gpu, decoder: &Decoder, storage: Storage) -> Result<Self> {
        let held = |values: &[f32]| Held::upload(gpu, DType::F32, values);
        let linear = |layer| HeldLinear::new(gpu, layer, storage, DType::F32);
        let layers = decoder.layers.iter().map(|layer| {
            Ok(HeldLayer {
                before: held(&layer.before)?,
                projection: linear(&layer.projection)?,
                attended: linear(&layer.attended)?,
                between: held(&layer.between)?,
                up: linear(&layer.up)?,
                down: linear(&layer.down)?,
            })
        });
        Ok(Self {
            gpu: gpu.clone(),
            shape: decoder.shape,
            storage,
            layers: layers.collect::<Result<_>>()?,
            embeddings: held(&decoder.embeddings)?,
            norm: held(&decoder.norm)?,
            head: linear(&decoder.head)?,
        })
    }

    /// Makes an empty cache with room for the context.
    pub(crate) fn cache(&self, kv: KvType) -> Result<Cache> {
        let Shape { layers, kv_heads, context, .. } = self.shape;
        let rows = kv_heads * context;
        let layer = |_| {
            let [keys, values] = [0, 1].map(|_| Held::alloc(&self.gpu, kv.dtype(), rows * self.shape.size()));
            let scales = Held::alloc(&self.gpu, DType::F32, if kv.is_scaled() { 2 * rows } else { 0 })?;
            Ok([keys?, values?, scales])
        };
        Ok(Cache { kv, layers: (0..layers).map(layer).collect::<Result<_>>()? })
    }

    /// Plans a pass over `tokens` tokens that follow those in the cache.
    pub(crate) fn pass(&self, tokens: usize, cache: &Cache) -> Result<Pass> {
        let Self { gpu, shape, .. } = self;
        let Shape { width, heads, kv_heads, context, .. } = *shape;
        let (size, all_heads) = (shape.size(), shape.all_heads());
        let alloc = |n: usize| Held::alloc(gpu, DType::F32, n);
        let [ids, places] = [gpu.alloc::<u32>(tokens)?, gpu.alloc::<u32>(tokens)?];
        let [before, after] = [gpu.alloc::<u32>(1)?, gpu.alloc::<u32>(1)?];
        let vectors = gpu.alloc::<f32>(tokens * width)?;
        let logits = gpu.alloc::<f32>(tokens * BYTES)?;
        let [held_ids, held_places, held_before, held_after] =
            [&ids, &places, &before, &after].map(|buffer| Held::from(buffer.clone()));
        let held_vectors = Held::from(vectors.clone());
        let order = Order::new(tokens, shape);
        let to_heads = Held::from(gpu.upload(&order.to_heads)?);
        let to_tokens = Held::from(gpu.upload(&order.to_tokens)?);

        let widest = shape.inner().max(all_heads * size).max(BYTES);
        let mut all = Building::new(gpu, DType::F32, tokens, self.storage, widest)?;
        let [x, normed, attended, by_tokens] =
            [alloc(tokens * width)?, alloc(tokens * width)?, alloc(tokens * width)?, alloc(tokens * width)?];
        let wide = alloc(tokens * widest)?;
        let by_heads = alloc(order.to_heads.len() * size)?;
        let [q, k] = [alloc(tokens * width)?, alloc(tokens * kv_heads * size)?];
        let [cos, sin] = angles(shape).map(|table| Held::upload(gpu, DType::F32, &table));
        let (cos, sin) = (cos?, sin?);
        let norm = RmsNorm::new(tokens, width).eps(EPS);
        let [_, keys, values] = order.parts.map(|row| row * size);

        all.floats(&Gather::new([BYTES, width], tokens), &[&self.embeddings, &held_ids, &x])?;
        for (layer, [k_cache, v_cache, scales]) in self.layers.iter().zip(&cache.layers) {
            all.floats(&norm, &[&x, &layer.before, &normed])?;
            all.linear(&layer.projection, Activation::None, &normed, &wide)?;
            let gather = Gather::new([tokens * all_heads, size], order.to_heads.len());
            all.floats(&gather, &[&wide, &to_heads, &by_heads])?;
            for (heads, begin, turned) in [(heads, 0, &q), (kv_heads, keys, &k)] {
                let rope = Rope::new([1, heads, tokens, size]).with_positions(context);
                let operands = [(&by_heads, begin), (&cos, 0), (&sin, 0), (&held_places, 0), (turned, 0)];
                all.network.add::<f32>(gpu, &rope, &operands)?;
            }
            let scales = if cache.kv.is_scaled() { vec![(scales, 0)] } else { vec![] };
            let append = KvAppend::new([1, kv_heads, tokens, size], context).kv(cache.kv);
            let new = [(&k, 0), (&by_heads, values), (&held_before, 0)];
            let stored = [(k_cache, 0), (v_cache, 0)];
            let operands = [new.as_slice(), &stored, &scales].concat();
            all.network.add::<f32>(gpu, &append, &operands)?;
            let attention = Attention::new([1, heads, tokens, size], [kv_heads, context]).causal().lengths();
            let operands = [&[(&q, 0)], stored.as_slice(), &scales, &[(&held_after, 0), (&attended, 0)]].concat();
            all.network.add::<f32>(gpu, &attention.kv(cache.kv), &operands)?;
            let gather = Gather::new([tokens * heads, size], tokens * heads);
            all.floats(&gather, &[&attended, &to_tokens, &by_tokens])?;
            all.linear_added(&layer.attended, &by_tokens, &x)?;
            all.floats(&norm, &[&x, &layer.between, &normed])?;
            all.linear(&layer.up, Activation::Gelu, &normed, &wide)?;
            all.linear_added(&layer.down, &wide, &x)?;
        }
        all.floats(&norm, &[&x, &self.norm, &held_vectors])?;
        all.linear(&self.head, Activation::None, &held_vectors, &logits.clone().into())?;
        Ok(Pass { network: all.network, ids, places, before, after, vectors, logits })
    }
}

/// Permutations of rows between token order and head order.
struct Order {
    /// Takes rows (T, heads of q, k and v) to (heads, T). Padding rows follow q and k, so that the next part can be
    /// bound.
    to_heads: Vec<u32>,
    /// First rows of q, k and v.
    parts: [usize; 3],
    /// Takes rows (heads of q, T) to (T, heads).
    to_tokens: Vec<u32>,
}

impl Order {
    fn new(tokens: usize, shape: &Shape) -> Self {
        let all = shape.all_heads();
        let (mut to_heads, mut parts, mut first) = (Vec::new(), [0; 3], 0);
        for (part, heads) in parts.iter_mut().zip([shape.heads, shape.kv_heads, shape.kv_heads]) {
            // Bindings begin at multiples of 256 bytes; a row has at least 32.
            to_heads.resize(to_heads.len().next_multiple_of(8), u32::MAX);
            *part = to_heads.len();
            for head in first..first + heads {
                to_heads.extend((0..tokens).map(|token| (token * all + head) as u32));
            }
            first += heads;
        }
        let of = |(token, head): (usize, usize)| (head * tokens + token) as u32;
        let rows = (0..tokens).flat_map(|token| (0..shape.heads).map(move |head| (token, head)));
        Self { to_heads, parts, to_tokens: rows.map(of).collect() }
    }
}

/// Returns the cosines and sines that rotate pairs of a head's elements, a row per position.
fn angles(shape: &Shape) -> [Vec<f32>; 2] {
    let pairs = shape.size() / 2;
    let angle = |i: usize| (i / pairs) as f64 * 10_000f64.powf(-((i % pairs) as f64) / pairs as f64);
    let table = |of: fn(f64) -> f64| (0..shape.context * pairs).map(|i| of(angle(i)) as f32).collect();
    [table(f64::cos), table(f64::sin)]
}

/// Planned ops and buffers from tokens to logits.
pub(crate) struct Pass {
    network: Network,
    ids: Buffer<u32>,
    places: Buffer<u32>,
    before: Buffer<u32>,
    after: Buffer<u32>,
    /// Input of the head.
    pub(crate) vectors: Buffer<f32>,
    pub(crate) logits: Buffer<f32>,
}

impl Pass {
    /// Reads as many tokens as the pass was planned for, after the `known` ones in the cache.
    pub(crate) fn run(&self, gpu: &Gpu, tokens: &[u8], known: usize) -> Result<()> {
        let ids: Vec<u32> = tokens.iter().map(|&byte| byte.into()).collect();
        let places: Vec<u32> = (known..known + tokens.len()).map(|place| place as u32).collect();
        self.ids.slice(..)?.write(&ids)?;
        self.places.slice(..)?.write(&places)?;
        self.before.slice(..)?.write(&[known as u32])?;
        self.after.slice(..)?.write(&[(known + tokens.len()) as u32])?;
        self.network.run(gpu)
    }
}

/// Losses of each byte of a piece but the first, given those before it.
pub(crate) struct Losses {
    network: Network,
    labels: Buffer<u32>,
    losses: Buffer<f32>,
}

impl Losses {
    /// Makes the op for the logits of a pass over `tokens` tokens.
    pub(crate) fn new(gpu: &Gpu, pass: &Pass, tokens: usize) -> Result<Self> {
        let count = tokens - 1;
        let (labels, losses, mean) = (gpu.alloc::<u32>(count)?, gpu.alloc::<f32>(count)?, gpu.alloc::<f32>(1)?);
        let operands = [pass.logits.clone().into(), labels.clone().into(), losses.clone().into(), mean.into()];
        let operands: Vec<_> = operands.iter().map(|held: &Held| (held, 0)).collect();
        let mut network = Network::default();
        network.add::<f32>(gpu, &CrossEntropy::new(count, BYTES), &operands)?;
        Ok(Self { network, labels, losses })
    }

    /// Returns the losses after the pass has read the piece.
    pub(crate) fn of(&self, gpu: &Gpu, piece: &[u8]) -> Result<Vec<f32>> {
        let next: Vec<u32> = piece[1..].iter().map(|&byte| byte.into()).collect();
        self.labels.slice(..)?.write(&next)?;
        self.network.run(gpu)?;
        self.losses.read()
    }
}
