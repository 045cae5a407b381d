use super::prelude::*;
use super::sort_positions;
use crate::primitives::{Categorical, Distribution, Random, Shuffle, alias_table, poisson_table};

judges! { random => judge_random, categorical => judge_categorical, shuffle => judge_shuffle }

fn judge_random(call: &OpCall) -> Result<Vec<Wanted>> {
    let (shape, op) = (output_shape(call, 0), descriptor::<Random>(call)?);
    Ok(vec![match call.dtype() {
        DType::F32 => {
            let (numbers, bound) = random_floats(op);
            // Without a bound every bit is known.
            let f32s = numbers.iter().map(|x| *x as f32).collect();
            match bound {
                Some(bound) => Wanted::near(&shape, f32s, bound)?,
                None => Wanted::exact(&shape, f32s)?,
            }
        }
        DType::I32 => Wanted::exact(&shape, random_words(op).iter().map(|x| *x as i32).collect())?,
        _ => Wanted::exact(&shape, random_words(op))?,
    }])
}

/// Enciphers a counter: four random words of a seed.
pub fn philox(counter: [u32; 4], seed: u64) -> [u32; 4] {
    let halves = |x: u64| (x as u32, (x >> 32) as u32);
    let (mut x, mut key) = (counter, halves(seed));
    for _ in 0..10 {
        let (a_low, a_high) = halves(u64::from(x[0]) * 0xd251_1f53);
        let (b_low, b_high) = halves(u64::from(x[2]) * 0xcd9e_8d57);
        x = [b_high ^ x[1] ^ key.0, b_low, a_high ^ x[3] ^ key.1, a_low];
        key = (key.0.wrapping_add(0x9e37_79b9), key.1.wrapping_add(0xbb67_ae85));
    }
    x
}

/// The word of number `i`, and what the same place holds after each time that its block is enciphered again.
fn draws(op: &Random, i: usize) -> impl Iterator<Item = u32> + use<> {
    let (seed, (stream, offset)) = (op.key(), op.place());
    let at = offset % 4 + i as u64;
    let block = offset / 4 + at / 4;
    let counter = [block as u32, (block >> 32) as u32, stream as u32, (stream >> 32) as u32];
    let blocks = std::iter::successors(Some(philox(counter, seed)), move |block| Some(philox(*block, seed)));
    blocks.map(move |block| block[(at % 4) as usize])
}

/// Returns the numbers of a distribution of integers, as words; of any other the words of its stream.
pub fn random_words(op: &Random) -> Vec<u32> {
    let (low, table) = match op.distribution() {
        Distribution::Poisson { mean } => poisson_table(mean),
        _ => (0, Vec::new()),
    };
    let number = |i: usize| {
        let word = draws(op, i).next().unwrap_or(0);
        match op.distribution() {
            Distribution::Bernoulli { p } => u32::from(u64::from(word) < (p * 4294967296.0).round() as u64),
            Distribution::Integers { low, high } => {
                // A word belongs to an integer by its product with their number. Integers have equally many words once
                // the first 2^32 % range low words of products are left out.
                let range = (high - low) as u64;
                let product = |word: u32| u64::from(word) * range;
                let fair = |word: &u32| u64::from(product(*word) as u32) >= (1 << 32) % range;
                let word = draws(op, i).take(65).find(fair).or(draws(op, i).nth(64)).unwrap_or(0);
                (low as u32).wrapping_add((product(word) >> 32) as u32)
            }
            Distribution::Poisson { .. } => low + table.iter().filter(|entry| **entry <= word).count() as u32,
            _ => word,
        }
    };
    (0..op.len()).map(number).collect()
}

/// Returns the numbers of a distribution of f32, and the error bound of each unless all bits are known.
pub fn random_floats(op: &Random) -> (Vec<f64>, Option<Vec<f64>>) {
    let word = |i: usize| draws(op, i).next().unwrap_or(0);
    let uniform = |word: u32| f64::from(word as f32 * 2f32.powi(-32) + 2f32.powi(-33));
    // The bounds of a function, and of a product and a sum; a subnormal number may become 0.
    let (function, rounding, tiny) = (2f64.powi(-20), 2f64.powi(-23), f64::from(f32::MIN_POSITIVE));
    let number = |i: usize| match op.distribution() {
        Distribution::Between { low, high } => {
            let (low, size) = (f64::from(low), f64::from(high - low));
            let u = uniform(word(i)) * size;
            (low + u, rounding * (low.abs() + u) + tiny)
        }
        Distribution::Exponential { mean } => {
            let x = -uniform(word(i)).ln() * f64::from(mean);
            (x, (function + rounding) * x + tiny)
        }
        Distribution::Normal { mean, deviation } => {
            // Pairs of words give pairs of numbers.
            let (x, y) = (word(i & !1), word(i | 1));
            let angle = (f64::from(y) + 0.5) * 2f64.powi(-32) * std::f64::consts::TAU;
            let (mean, r) = (f64::from(mean), f64::from(deviation) * (-2.0 * uniform(x).ln()).sqrt());
            let z = r * if i.is_multiple_of(2) { angle.sin() } else { angle.cos() };
            (mean + z, function * r + rounding * (mean.abs() + r) + tiny)
        }
        Distribution::LogNormal { mean, deviation } => {
            let (x, y) = (word(i & !1), word(i | 1));
            let angle = (f64::from(y) + 0.5) * 2f64.powi(-32) * std::f64::consts::TAU;
            let (mean, r) = (f64::from(mean), f64::from(deviation) * (-2.0 * uniform(x).ln()).sqrt());
            let z = mean + r * if i.is_multiple_of(2) { angle.sin() } else { angle.cos() };
            // The error of the logarithm, then that of exp.
            let error = function * r + rounding * (mean.abs() + r) + tiny;
            (z.exp(), z.exp() * (error.exp_m1() + rounding * (3.0 + 2.0 * z.abs())) + tiny)
        }
        _ => (uniform(word(i)), 0.0),
    };
    let (numbers, bounds): (Vec<_>, Vec<_>) = (0..op.len()).map(number).unzip();
    let known = op.distribution() == Distribution::Uniform;
    (numbers, (!known).then_some(bounds))
}

fn judge_categorical(call: &OpCall) -> Result<Vec<Wanted>> {
    Ok(vec![Wanted::exact(&output_shape(call, 0), categorical(descriptor::<Categorical>(call)?))?])
}

/// Returns the categories.
pub fn categorical(op: &Categorical) -> Vec<u32> {
    let (weights, n, [seed, stream, offset]) = op.parts();
    let table = alias_table(weights);
    let word = |at: u64| {
        let block = (offset + at) / 4;
        let counter = [block as u32, (block >> 32) as u32, stream as u32, (stream >> 32) as u32];
        u64::from(philox(counter, seed)[((offset + at) % 4) as usize])
    };
    let number = |i: u64| {
        let column = (word(2 * i) * table.len() as u64) >> 32;
        let [own, other] = table[column as usize];
        if word(2 * i + 1) < u64::from(own) { column as u32 } else { other }
    };
    (0..n as u64).map(number).collect()
}

fn judge_shuffle(call: &OpCall) -> Result<Vec<Wanted>> {
    let (op, shape) = (descriptor::<Shuffle>(call)?, output_shape(call, 0));
    by_input!(call, 0, [f32, f16, i32, u32, u8, i8], T => {
        let x = input::<T>(call, 0)?;
        Ok(vec![Wanted::exact(&shape, shuffle(op, &x[..there(call, x.len())?]))?])
    })
}

/// Returns the elements in the order of the op's random words; equal words keep their order.
pub fn shuffle<T: Element>(op: &Shuffle, input: &[T]) -> Vec<T> {
    let words = random_words(&op.words());
    sort_positions(&words[..input.len()], false, 0..32).into_iter().map(|i| input[i]).collect()
}

#[cfg(test)]
#[path = "tests/random.rs"]
mod tests;
