//! The encoder in f64 on the processor, a sentence at a time: what the device is held against.

use super::weights::{EPS, Layer, Linear, Norm, Weights};
use tilework::Activation;
use tilework::reference::activate;

/// The embedding of a sentence.
pub(crate) fn embed(weights: &Weights, tokens: &[u32]) -> Vec<f64> {
    let hidden = weights.hidden;
    let mut x = Vec::with_capacity(tokens.len() * hidden);
    for (place, &token) in tokens.iter().enumerate() {
        let row = |table: &[f32], i: usize| table[i * hidden..(i + 1) * hidden].to_vec();
        let both = row(&weights.words, token as usize).into_iter().zip(row(&weights.positions, place));
        x.extend(both.map(|(word, position)| f64::from(word) + f64::from(position)));
    }
    normalize(&mut x, &weights.norm);
    for layer in &weights.layers {
        let attended = attention(&x, layer, weights);
        add(&mut x, &linear(&attended, &layer.attended));
        normalize(&mut x, &layer.attended_norm);
        let mut inner = linear(&x, &layer.up);
        inner.iter_mut().for_each(|v| *v = activate(Activation::Gelu, *v));
        add(&mut x, &linear(&inner, &layer.down));
        normalize(&mut x, &layer.norm);
    }
    let mut mean = vec![0.0; hidden];
    x.chunks(hidden).for_each(|row| add(&mut mean, row));
    let norm = dot(&mean, &mean).sqrt();
    mean.iter().map(|v| v / norm).collect()
}

/// The cosine of two vectors.
pub(crate) fn cosine(a: &[f64], b: &[f64]) -> f64 {
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(x: &mut [f64], y: &[f64]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
}

fn linear(x: &[f64], layer: &Linear) -> Vec<f64> {
    let weight: Vec<f64> = layer.weight.iter().map(|w| f64::from(*w)).collect();
    let row = |x: &[f64]| {
        let of = |(w, b): (&[f64], &f32)| dot(x, w) + f64::from(*b);
        weight.chunks(layer.inputs).zip(&layer.bias).map(of).collect::<Vec<_>>()
    };
    x.chunks(layer.inputs).flat_map(row).collect()
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

/// Every token by all, head by head.
fn attention(x: &[f64], layer: &Layer, weights: &Weights) -> Vec<f64> {
    let [q, k, v] = [&layer.query, &layer.key, &layer.value].map(|layer| linear(x, layer));
    let (hidden, size) = (weights.hidden, weights.hidden / weights.heads);
    let mut y = vec![0.0; x.len()];
    for (query, y) in q.chunks(hidden).zip(y.chunks_mut(hidden)) {
        for columns in (0..weights.heads).map(|head| head * size..(head + 1) * size) {
            let score = |key: &[f64]| {
                let product = dot(&query[columns.clone()], &key[columns.clone()]);
                (product / (size as f64).sqrt()).exp()
            };
            let scores: Vec<f64> = k.chunks(hidden).map(score).collect();
            let sum: f64 = scores.iter().sum();
            for (score, value) in scores.iter().zip(v.chunks(hidden)) {
                let weighted: Vec<f64> = value[columns.clone()].iter().map(|v| v * score / sum).collect();
                add(&mut y[columns.clone()], &weighted);
            }
        }
    }
    y
}
