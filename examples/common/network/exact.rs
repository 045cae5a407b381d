//! Parts of transformers in f64 on the processor, as references.

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

pub(crate) fn add(x: &mut [f64], y: &[f64]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
}

/// Multiplies each row of `inputs` elements by a matrix with one row per output, and adds the biases, if any.
pub(crate) fn linear(x: &[f64], inputs: usize, weight: &[f32], bias: &[f32]) -> Vec<f64> {
    let weight: Vec<f64> = weight.iter().map(|w| f64::from(*w)).collect();
    let bias = |i: usize| bias.get(i).map_or(0.0, |b| f64::from(*b));
    let row = |x: &[f64]| {
        let outputs = weight.chunks(inputs).enumerate();
        outputs.map(|(i, w)| dot(x, w) + bias(i)).collect::<Vec<_>>()
    };
    x.chunks(inputs).flat_map(row).collect()
}

/// Heads of attention.
#[derive(Clone, Copy)]
pub(crate) struct Heads {
    pub(crate) queries: usize,
    /// Heads of keys and values, each shared by several query heads.
    pub(crate) keys: usize,
    pub(crate) size: usize,
    /// Whether a token sees only itself and earlier ones.
    pub(crate) causal: bool,
}

/// Attends head by head. Rows of `q` hold all query heads; rows of `k` and `v` hold all key heads.
pub(crate) fn attention(q: &[f64], k: &[f64], v: &[f64], heads: Heads) -> Vec<f64> {
    let Heads { queries, keys, size, causal } = heads;
    let mut y = vec![0.0; q.len()];
    for (place, (query, y)) in q.chunks(queries * size).zip(y.chunks_mut(queries * size)).enumerate() {
        for head in 0..queries {
            let group = head / (queries / keys);
            let (own, theirs) = (head * size..(head + 1) * size, group * size..(group + 1) * size);
            let seen = if causal { place + 1 } else { usize::MAX };
            let score = |key: &[f64]| (dot(&query[own.clone()], &key[theirs.clone()]) / (size as f64).sqrt()).exp();
            let scores: Vec<f64> = k.chunks(keys * size).take(seen).map(score).collect();
            let sum: f64 = scores.iter().sum();
            for (score, value) in scores.iter().zip(v.chunks(keys * size)) {
                let weighted: Vec<f64> = value[theirs.clone()].iter().map(|v| v * score / sum).collect();
                add(&mut y[own.clone()], &weighted);
            }
        }
    }
    y
}
