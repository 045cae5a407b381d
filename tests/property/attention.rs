//! Cases of attention and of its cache.

use super::draw::{Draw, typed};
use super::guarded::{Case, wide};
use crate::support::Sample;
use half::f16;
use tilework::Element;
use tilework::attention::Paging;
use tilework::attention::{Attention, AttentionBackward, KvAppend, KvType, ScoreStage};
use tilework::program::Op;
use tilework::reference::{self, AttentionInputs};

/// Page tables for each sequence, in random order, and the number of pages.
fn table(draw: &mut Draw, sequences: usize, each: usize) -> (Vec<u32>, usize) {
    let pages = sequences * each + 2;
    let mut all: Vec<u32> = (0..pages as u32).collect();
    for i in (1..pages).rev() {
        all.swap(i, draw.random().next() as usize % (i + 1));
    }
    all.truncate(sequences * each);
    (all, pages)
}

pub(super) fn attention(draw: &mut Draw) -> Case {
    fn of<T: Sample, K: Sample>(draw: &mut Draw) -> Case
    where
        Attention: Op<T>,
    {
        let variant = draw.variant(Attention::variants());
        let (b, g, t, s) = (draw.length(1, 2), draw.length(1, 2), draw.length(0, 40), draw.length(0, 60));
        let h = g * draw.option(&[1, 2, 3]);
        let d = draw.option(&[16, 40, 64, 7, 33, 100]);
        let e = draw.option(&[d, d, 24, 9, 100]);
        let mut op = Attention::new([b, h, t, d], [g, s]).value_size(e).variant(variant);
        if draw.option(&[false, false, true]) {
            op = op.softcap(1.5);
        }
        let stages = [None, None].into_iter().chain(ScoreStage::ALL.map(Some)).collect::<Vec<_>>();
        let stage = draw.option(&stages).filter(|_| ["auto", "naive"].contains(&variant));
        if let Some(stage) = stage {
            op = op.scores(stage);
        }
        let with_logsumexp = draw.option(&[false, false, true]);
        if with_logsumexp {
            op = op.logsumexp();
        }
        op = op.kv(if K::DTYPE == f16::DTYPE { KvType::F16 } else { KvType::F32 });
        if draw.option(&[false, true]) && t <= s {
            op = op.causal();
        }
        if draw.option(&[false, false, true]) {
            op = op.window(9);
        }
        let paged = draw.option(&[None, None, Some(16)]);
        let (mut table_of, mut rows) = (None, b * g * s);
        if let Some(tokens) = paged {
            let (table, pages) = table(draw, b, s.div_ceil(tokens));
            op = op.paged(Paging { tokens, pages });
            (table_of, rows) = (Some(table), pages * g * tokens);
        }
        let with_lengths = draw.option(&[false, true]);
        let lengths: Option<Vec<u32>> =
            with_lengths.then(|| (0..b).map(|_| (draw.random().next() % (s as u64 + 1)) as u32).collect());
        if with_lengths {
            op = op.lengths();
        }
        let with_mask = draw.option(&[false, false, true]);
        let mask: Option<Vec<f32>> = with_mask.then(|| {
            let hidden = |x: f32, hide: bool| if hide { f32::NEG_INFINITY } else { x };
            (draw.numbers::<f32>(t * s).into_iter()).map(|x| hidden(x, draw.chance(3))).collect()
        });
        if with_mask {
            op = op.masked([1, 1]);
        }
        let q = draw.numbers::<T>(b * h * t * d);
        let (mut k, mut v) = (draw.numbers::<K>(rows * d), draw.numbers::<K>(rows * e));
        // Entries past a length are arbitrary.
        for (b, len) in lengths.iter().flatten().enumerate().filter(|_| paged.is_none()) {
            for pair in b * g..(b + 1) * g {
                let (from, to) = (pair * s + *len as usize, (pair + 1) * s);
                k[from * d..to * d].fill(K::from_f64(f64::NAN));
                v[from * e..to * e].fill(K::from_f64(f64::NAN));
            }
        }
        let inputs = AttentionInputs { table: table_of.as_deref(), lengths: lengths.as_deref(), mask: mask.as_deref() };
        let want = reference::attention(&op, &q, &k, &v, inputs);
        let bound = reference::attention_bound(&op, &q, &k, &v, inputs);
        // Weights are rounded to f16, to either neighbour, subnormals included, and the hardware truncates sums.
        let sizes: Vec<K> = v.iter().map(|x| K::from_f64(x.to_f64().abs())).collect();
        let sizes = reference::attention(&op, &q, &k, &sizes, inputs);
        let small = 3.0 * s as f64 / (1 << 24) as f64;
        let rounded = bound.iter().zip(sizes).map(|(b, size)| 4.0 * b + size.to_f64() / 1000.0 + small).collect();
        let mut case = Case::new::<T>(op.clone()).given(&q).given(&k).given(&v);
        for list in [&table_of, &lengths].into_iter().flatten() {
            case = case.given(list);
        }
        if let Some(mask) = &mask {
            case = case.given(mask);
        }
        let mut case = case.close(&want, bound).on_matrices(rounded);
        if stage.is_some() {
            let scores = reference::attention_scores(&op, &q, &k, inputs);
            case = case.close(&scores, reference::attention_scores_bound(&op, &q, &k, inputs));
        }
        if with_logsumexp {
            let want = reference::attention_logsumexp(&op, &q, &k, inputs);
            case = case.close(&want, reference::attention_logsumexp_bound(&op, &q, &k, inputs));
        }
        case
    }
    let forms: [fn(&mut Draw) -> Case; 3] = [of::<f32, f32>, of::<f16, f16>, of::<f32, f16>];
    draw.option(&forms)(draw)
}

pub(super) fn attention_backward(draw: &mut Draw) -> Case {
    fn of<T: Sample>(draw: &mut Draw) -> Case
    where
        AttentionBackward: Op<T>,
    {
        let variant = draw.variant(AttentionBackward::variants());
        let (b, g, t, s) = (draw.length(1, 2), draw.length(1, 2), draw.length(1, 70), draw.length(1, 70));
        let h = g * draw.option(&[1, 2, 3]);
        let (d, e) = draw.option(&[(16, 16), (40, 40), (64, 64), (9, 9), (7, 20)]);
        let mut op = AttentionBackward::new([b, h, t, d], [g, s]).value_size(e).variant(variant);
        if draw.option(&[false, true]) {
            op = op.causal();
        }
        if draw.option(&[false, false, true]) {
            op = op.window(draw.pick(&[9, 1, 50]));
        }
        let [q, dy] = [d, e].map(|size| draw.special::<T>(b * h * t * size));
        let [k, v] = [d, e].map(|size| draw.special::<T>(b * g * s * size));
        if draw.option(&[false, false, true]) {
            op = op.saved();
            let (output, logsumexp) = (draw.special::<T>(dy.len()), draw.special::<f32>(b * h * t));
            let inputs = [&q[..], &k, &v, &dy];
            let want = reference::attention_backward_saved(&op, inputs, &output, &logsumexp);
            let bound = reference::attention_backward_saved_bound(&op, inputs, &output, &logsumexp);
            let case = Case::new::<T>(op).given(&q).given(&k).given(&v).given(&dy);
            let case = case.given(&output).given(&logsumexp);
            return want.iter().zip(bound).fold(case, |case, (want, bound)| case.close(want, bound));
        }
        let want = reference::attention_backward(&op, &q, &k, &v, &dy);
        let bound = reference::attention_backward_bound(&op, &q, &k, &v, &dy);
        let case = Case::new::<T>(op).given(&q).given(&k).given(&v).given(&dy);
        want.iter().zip(bound).fold(case, |case, (want, bound)| case.close(want, bound))
    }
    typed!(draw, of, [f32, f16])
}

pub(super) fn kv_append(draw: &mut Draw) -> Case {
    fn of<T: Sample>(draw: &mut Draw) -> Case
    where
        KvAppend: Op<T>,
    {
        let variant = draw.variant(KvAppend::variants());
        let (b, g, n, s) = (draw.length(1, 4), draw.length(1, 4), draw.length(0, 5), draw.length(0, 50));
        let d = draw.option(&[16, 24, 64, 7, 33]);
        let e = draw.option(&[d, d, 20, 5]);
        let mut op = KvAppend::new([b, g, n, d], s).value_size(e).variant(variant);
        let (mut table_of, mut rows) = (None, b * g * s);
        if draw.option(&[false, true]) {
            let (table, pages) = table(draw, b, s.div_ceil(16));
            op = op.paged(Paging { tokens: 16, pages });
            (table_of, rows) = (Some(table), pages * g * 16);
        }
        // Some past the end.
        let lengths: Vec<u32> = (0..b).map(|_| (draw.random().next() % (s as u64 + 2)) as u32).collect();
        let new = [d, e].map(|size| draw.special::<T>(b * g * n * size));
        let mut case = Case::new::<T>(op.clone()).given(&new[0]).given(&new[1]);
        if let Some(table) = &table_of {
            case = case.given(table);
        }
        case = case.given(&lengths);
        for (new, size) in new.iter().zip([d, e]) {
            let before = draw.special::<T>(rows * size);
            let mut after: Vec<f32> = wide(&before).iter().map(|x| *x as f32).collect();
            reference::kv_append(&op, new, &lengths, table_of.as_deref(), &mut after);
            let len = after.len();
            case = case.updated(&before, wide(&after), vec![0.0; len]);
        }
        case
    }
    typed!(draw, of, [f32, f16])
}
