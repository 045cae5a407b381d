use super::dropout::word;
use super::prelude::*;
use crate::nn::SampleLogits;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<SampleLogits>(call)?;
    by_input!(call, 0, [f32, f16], T => {
        let tokens = sample_logits(op, input::<T>(call, 0)?);
        let want: Vec<u32> = tokens.iter().map(|tokens| tokens.first().copied().unwrap_or(0)).collect();
        // Between two tokens devices may choose.
        let bound = tokens.iter().map(|tokens| if tokens.len() > 1 { f64::INFINITY } else { 0.0 }).collect();
        Ok(vec![Wanted::near(&output_shape(call, 0), want, bound)?])
    })
}

/// Returns for each row the tokens that a device may draw: one, or those beside a border that lies within the error of
/// probabilities computed in f32 and rounded to 2^-24 of the largest.
pub fn sample_logits<T: Number>(op: &SampleLogits, logits: &[T]) -> Vec<Vec<u32>> {
    let ([_, classes], ..) = op.rule();
    let rows = logits.chunks_exact(classes.max(1)).enumerate();
    rows.map(|(row, logits)| draw(op, row, &logits.iter().map(|x| x.to_f64()).collect::<Vec<_>>())).collect()
}

fn draw(op: &SampleLogits, row: usize, logits: &[f64]) -> Vec<u32> {
    let (_, sharpness, top_k, top_p, place) = op.rule();
    let mut order: Vec<usize> = (0..logits.len()).filter(|i| logits[*i] > f64::NEG_INFINITY).collect();
    order.sort_by(|i, j| logits[*j].total_cmp(&logits[*i]));
    let Some(&first) = order.first() else { return vec![0] };
    let largest = logits[first];
    // Keeps what is at least as large as the last of `count`.
    let cut = |order: &mut Vec<usize>, count: usize| {
        if let Some(&last) = order.get(count - 1) {
            order.retain(|i| logits[*i] >= logits[last]);
        }
    };
    if sharpness == 0.0 {
        cut(&mut order, 1);
        return vec![order.iter().copied().min().unwrap_or(0) as u32];
    }
    if top_k > 0 {
        cut(&mut order, top_k as usize);
    }
    let weight = |i: usize| {
        if logits[i] == largest { 1.0 } else { ((logits[i] - largest) * f64::from(sharpness)).exp() }
    };
    let sum = |order: &[usize]| order.iter().map(|i| weight(*i)).sum::<f64>();
    // 40 steps of f32 where the exponent is -16, less where it is nearer to 0, and a rounding each.
    let error = |order: &[usize]| 40.0 * 2f64.powi(-23) * sum(order) + order.len() as f64 * 2f64.powi(-24);
    if top_p > 0 {
        let (all, slack) = (sum(&order), 2.0 * error(&order));
        let wanted = f64::from(top_p) / 4294967296.0 * all;
        let mut reached = 0.0;
        let counts = |limit: f64| {
            let mut reached = 0.0;
            order.iter().position(|i| {
                reached += weight(*i);
                reached >= limit
            })
        };
        let sets: Vec<usize> =
            [wanted - slack, wanted, wanted + slack].map(|limit| counts(limit).unwrap_or(order.len() - 1) + 1).into();
        let kept = |count: usize| {
            let mut kept = order.clone();
            cut(&mut kept, count);
            kept
        };
        let [low, middle, high] = [0, 1, 2].map(|i| kept(sets[i]));
        reached += sum(&middle);
        let mut tokens = passed(&middle, weight, word(place, row), reached, error(&middle));
        for other in [low, high].into_iter().filter(|other| other.len() != middle.len()) {
            tokens.extend(passed(&other, weight, word(place, row), sum(&other), error(&other)));
        }
        tokens.dedup();
        return tokens;
    }
    passed(&order, weight, word(place, row), sum(&order), error(&order))
}

/// The tokens at which the sum of weights may pass the share of the word, the likeliest first.
fn passed(kept: &[usize], weight: impl Fn(usize) -> f64, word: u32, sum: f64, error: f64) -> Vec<u32> {
    let share = f64::from(word) / 4294967296.0 * sum;
    let mut in_order = kept.to_vec();
    in_order.sort_unstable();
    let (mut before, mut sure, mut near) = (0.0, Vec::new(), Vec::new());
    for i in in_order {
        let after = before + weight(i);
        if share >= before && share < after {
            sure.push(i as u32);
        } else if share > before - 2.0 * error && share < after + 2.0 * error {
            near.push(i as u32);
        }
        before = after;
    }
    sure.extend(near);
    sure
}

#[cfg(test)]
#[path = "tests/sample_logits.rs"]
mod tests;
