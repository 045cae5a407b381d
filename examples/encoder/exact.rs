//! The encoder in f64 on the processor, one sentence at a time.

use super::common::network::exact::{Heads, add, attention, dot, linear};
use super::common::network::layers::Linear;
use super::weights::{EPS, Norm, Weights};
use tilework::Activation;
use tilework::reference::activate;

/// Embeds a sentence.
pub(crate) fn embed(weights: &Weights, tokens: &[u32]) -> Vec<f64> {
    let (hidden, size) = (weights.hidden, weights.hidden / weights.heads);
    let heads = Heads { queries: weights.heads, keys: weights.heads, size, causal: false };
    let mut x = Vec::with_capacity(tokens.len() * hidden);
    for (place, &token) in tokens.iter().enumerate() {
        let row = |table: &[f32], i: usize| table[i * hidden..(i + 1) * hidden].to_vec();
        let both = row(&weights.words, token as usize).into_iter().zip(row(&weights.positions, place));
        x.extend(both.map(|(word, position)| f64::from(word) + f64::from(position)));
    }
    normalize(&mut x, &weights.norm);
    let by = |x: &[f64], layer: &Linear| linear(x, layer.inputs, &layer.weight, &layer.bias);
    for layer in &weights.layers {
        let [q, k, v] = [&layer.query, &layer.key, &layer.value].map(|layer| by(&x, layer));
        add(&mut x, &by(&attention(&q, &k, &v, heads), &layer.attended));
        normalize(&mut x, &layer.attended_norm);
        let mut inner = by(&x, &layer.up);
        inner.iter_mut().for_each(|v| *v = activate(Activation::Gelu, *v));
        add(&mut x, &by(&inner, &layer.down));
        normalize(&mut x, &layer.norm);
    }
    let mut mean = vec![0.0; hidden];
    x.chunks(hidden).for_each(|row| add(&mut mean, row));
    let norm = dot(&mean, &mean).sqrt();
    mean.iter().map(|v| v / norm).collect()
}

/// Returns the cosine of two vectors.
pub(crate) fn cosine(a: &[f64], b: &[f64]) -> f64 {
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

fn normalize(x: &mut [f64], norm: &Norm) {
    let n = norm.gamma.len();
    for row in x.chunks_mut(n) {
        let mean = row.iter().sum::<f64>() / n as f64;
        let variance = row.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n as f64;
        let factor = 1.0 / (variance + f64::from(EPS)).sqrt();
        for ((v, gamma), beta) in row.iter_mut().zip(&norm.gamma).zip(&norm.beta) {
            *v = (*v - mean) * factor * f64::from(*gamma) + f64::from(*beta);
        }
    }
}
