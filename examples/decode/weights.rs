//! A decoder's parameters, random by seed.

use super::common::network::layers::Linear;
use super::common::{Failure, Random};

/// Number of tokens: one per byte.
pub(crate) const BYTES: usize = 256;

/// Maximum parameters of a decoder: 1 GiB.
const MAX_PARAMETERS: usize = 1 << 28;

/// The epsilon of the norms.
pub(crate) const EPS: f32 = 1e-5;

/// Sizes of a decoder.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) layers: usize,
    /// Elements of a token's vector.
    pub(crate) width: usize,
    pub(crate) heads: usize,
    /// Heads of keys and values, each shared by several query heads.
    pub(crate) kv_heads: usize,
    /// Tokens read together; the capacity of the cache.
    pub(crate) context: usize,
}

impl Shape {
    /// Rejects impossible sizes.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let Self { layers, width, heads, kv_heads, context } = *self;
        let all = [("--layers", layers), ("--heads", heads), ("--kv-heads", kv_heads)];
        if let Some((name, _)) = all.into_iter().find(|(_, value)| !(1..=1000).contains(value)) {
            return Err(Failure::bad_input(format!("{name}: must be from 1 to 1000")));
        }
        if !(2..=1 << 20).contains(&context) {
            return Err(Failure::bad_input(format!("--context {context}: must be from 2 to {}", 1 << 20)));
        }
        if heads % kv_heads != 0 {
            return Err(Failure::bad_input(format!("--heads {heads}: must be a multiple of --kv-heads, {kv_heads}")));
        }
        let parameters = self.parameters();
        if parameters > MAX_PARAMETERS {
            return Err(Failure::bad_input(format!(
                "--layers {layers}, --width {width}: {parameters} parameters exceed the maximum of {MAX_PARAMETERS}"
            )));
        }
        if width > 1 << 14 || width == 0 || width % (8 * heads) != 0 {
            return Err(Failure::bad_input(format!(
                "--width {width}: must be at most {} and a multiple of {} (8 for each of {heads} heads)",
                1 << 14,
                8 * heads
            )));
        }
        Ok(())
    }

    /// Estimates the layers' parameters without overflow.
    fn parameters(&self) -> usize {
        // Queries, keys and values; attention output; up and down.
        let columns = self.width.saturating_mul(3 + 1 + 4);
        self.layers.saturating_mul(self.width).saturating_mul(columns)
    }

    /// Elements of a head's vector.
    pub(crate) fn size(&self) -> usize {
        self.width / self.heads
    }

    /// Returns the inner width of a layer's two products.
    pub(crate) fn inner(&self) -> usize {
        2 * self.width
    }

    /// Returns the heads of queries, keys and values.
    pub(crate) fn all_heads(&self) -> usize {
        self.heads + 2 * self.kv_heads
    }
}

pub(crate) struct Layer {
    /// Factors of the norm before attention.
    pub(crate) before: Vec<f32>,
    /// Queries, keys and values, concatenated.
    pub(crate) projection: Linear,
    pub(crate) attended: Linear,
    /// Factors of the norm before the two products.
    pub(crate) between: Vec<f32>,
    pub(crate) up: Linear,
    pub(crate) down: Linear,
}

pub(crate) struct Decoder {
    pub(crate) shape: Shape,
    /// One row per byte.
    pub(crate) embeddings: Vec<f32>,
    pub(crate) layers: Vec<Layer>,
    pub(crate) norm: Vec<f32>,
    /// Turns vectors into logits of the next byte.
    pub(crate) head: Linear,
}

/// How much a random layer may change a token's vector, so that the token stays recognisable.
const ADDED: f64 = 0.3;

impl Random {
    /// Returns `n` numbers, uniform between `around - spread` and `around + spread`.
    pub(crate) fn numbers(&mut self, n: usize, around: f64, spread: f64) -> Vec<f32> {
        let unit = |bits: u64| (bits >> 11) as f64 * 2f64.powi(-52) - 1.0;
        (0..n).map(|_| (around + spread * unit(self.next())) as f32).collect()
    }

    /// Makes a layer whose outputs vary about `gain` times as much as its inputs.
    fn linear(&mut self, outputs: usize, inputs: usize, gain: f64) -> Linear {
        let weight = self.numbers(outputs * inputs, 0.0, gain * (3.0 / inputs as f64).sqrt());
        Linear { weight, bias: self.numbers(outputs, 0.0, 0.1), outputs, inputs }
    }
}

impl Decoder {
    /// Makes the decoder of a seed. Its head is zero.
    pub(crate) fn new(shape: Shape, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let (width, inner) = (shape.width, shape.inner());
        let embeddings = random.numbers(BYTES * width, 0.0, 3f64.sqrt());
        let layers = (0..shape.layers).map(|_| Layer {
            before: random.numbers(width, 1.0, 0.1),
            projection: random.linear(shape.all_heads() * shape.size(), width, 1.0),
            attended: random.linear(width, width, ADDED),
            between: random.numbers(width, 1.0, 0.1),
            up: random.linear(inner, width, 1.0),
            down: random.linear(width, inner, ADDED),
        });
        let layers = layers.collect();
        let norm = random.numbers(width, 1.0, 0.1);
        let head = Linear { weight: vec![0.0; BYTES * width], bias: vec![0.0; BYTES], outputs: BYTES, inputs: width };
        Self { shape, embeddings, layers, norm, head }
    }
}
