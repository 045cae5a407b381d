//! `PagePool` with `KvAppend` and `Attention`: sequences that grow, fork and end give the results of a cache without
//! pages.

use crate::support::{Random, devices, gpu};
use half::f16;
use tilework::ErrorKind;
use tilework::attention::{Attention, KvAppend, PageMoves, PagePool, Paging, SequenceId};
use tilework::prelude::*;

const PAGING: Paging = Paging { tokens: 16, pages: 12 };
const HEADS: usize = 2;
const SIZE: usize = 9;
const KEYS: usize = 64;

/// A paged cache, and the keys of each sequence on the host; values are twice the keys.
struct Paged<'a> {
    gpu: &'a Gpu,
    pool: PagePool,
    k: Buffer<f16>,
    v: Buffer<f16>,
    texts: Vec<(SequenceId, Vec<[f16; HEADS * SIZE]>)>,
    random: Random,
}

impl<'a> Paged<'a> {
    fn new(gpu: &'a Gpu) -> Self {
        let [k, v] = [(); 2].map(|()| gpu.alloc_zeroed(PAGING.pages * HEADS * PAGING.tokens * SIZE).unwrap());
        Self { gpu, pool: PagePool::new(PAGING).unwrap(), k, v, texts: Vec::new(), random: Random::new(5) }
    }

    fn moved(&self, moves: &PageMoves) {
        let mut rec = self.gpu.recorder();
        moves.record(self.gpu, &mut rec, &self.k).unwrap();
        moves.record(self.gpu, &mut rec, &self.v).unwrap();
        rec.submit().unwrap();
    }

    /// Appends random tokens to a text.
    fn append(&mut self, text: usize, tokens: usize) {
        let id = self.texts[text].0;
        let [_, before] = self.pool.upload(self.gpu, &[id], KEYS).unwrap();
        let moves = self.pool.append(id, tokens).unwrap();
        self.moved(&moves);
        let [table, _] = self.pool.upload(self.gpu, &[id], KEYS).unwrap();
        let new: Vec<[f16; HEADS * SIZE]> =
            (0..tokens).map(|_| std::array::from_fn(|_| f16::from_f64(self.random.unit() - 0.5))).collect();
        // (heads, tokens, size)
        let head = |h: usize| new.iter().flat_map(move |token| token[h * SIZE..][..SIZE].to_vec());
        let rows: Vec<f16> = (0..HEADS).flat_map(head).collect();
        let twice: Vec<f16> = rows.iter().map(|x| *x + *x).collect();
        let plan = KvAppend::new([1, HEADS, tokens, SIZE], KEYS).paged(PAGING).plan::<f16>(self.gpu).unwrap();
        let (rows, twice) = (self.gpu.upload(&rows).unwrap(), self.gpu.upload(&twice).unwrap());
        let mut rec = self.gpu.recorder();
        plan.with_table(&table).record(&mut rec, &rows, &twice, &before, &self.k, &self.v).unwrap();
        rec.submit().unwrap();
        self.texts[text].1.extend(new);
    }

    /// Compares attention over the pages with attention over dense keys, for every text.
    fn check(&self) {
        let ids: Vec<_> = self.texts.iter().map(|(id, _)| *id).collect();
        let b = ids.len();
        let mut dense = vec![f16::ZERO; b * HEADS * KEYS * SIZE];
        for (i, (_, tokens)) in self.texts.iter().enumerate() {
            for (at, token) in tokens.iter().enumerate() {
                for h in 0..HEADS {
                    let to = ((i * HEADS + h) * KEYS + at) * SIZE;
                    dense[to..][..SIZE].copy_from_slice(&token[h * SIZE..][..SIZE]);
                }
            }
        }
        let [table, lengths] = self.pool.upload(self.gpu, &ids, KEYS).unwrap();
        let wanted: Vec<u32> = self.texts.iter().map(|(_, tokens)| tokens.len() as u32).collect();
        assert_eq!(lengths.read().unwrap(), wanted);
        let q = self.gpu.upload(&vec![f16::ONE; b * HEADS * SIZE]).unwrap();
        let twice: Vec<f16> = dense.iter().map(|x| *x + *x).collect();
        let (dense_k, dense_v) = (self.gpu.upload(&dense).unwrap(), self.gpu.upload(&twice).unwrap());
        let [a, w] = [(); 2].map(|()| self.gpu.alloc::<f16>(b * HEADS * SIZE).unwrap());
        let op = Attention::new([b, HEADS, 1, SIZE], [HEADS, KEYS]).lengths();
        let paged = op.clone().paged(PAGING).plan::<f16>(self.gpu).unwrap();
        let whole = op.plan::<f16>(self.gpu).unwrap();
        let mut rec = self.gpu.recorder();
        let with = paged.with_table(&table).with_lengths(&lengths);
        with.record(&mut rec, &q, &self.k, &self.v, &a).unwrap();
        whole.with_lengths(&lengths).record(&mut rec, &q, &dense_k, &dense_v, &w).unwrap();
        rec.submit().unwrap();
        assert_eq!(a.read().unwrap(), w.read().unwrap());
    }

    fn insert(&mut self) -> usize {
        self.texts.push((self.pool.insert(), Vec::new()));
        self.texts.len() - 1
    }

    fn fork(&mut self, text: usize) -> usize {
        let (id, tokens) = self.texts[text].clone();
        self.texts.push((self.pool.fork(id).unwrap(), tokens));
        self.texts.len() - 1
    }
}

#[test]
fn pages_give_the_results_of_a_dense_cache() {
    for device in devices().iter().filter(|d| d.main || d.label.ends_with("WebGPU defaults)")) {
        let mut paged = Paged::new(&device.gpu);
        let (a, b) = (paged.insert(), paged.insert());
        paged.append(a, 20);
        paged.append(b, 33);
        paged.append(a, 13);
        paged.check();
        // The fork copies the shared page before it writes; the other sequence keeps its own.
        let c = paged.fork(a);
        paged.append(c, 3);
        paged.append(a, 1);
        paged.check();
        // Holes, then none.
        let (id, _) = paged.texts.remove(b);
        paged.pool.free(id).unwrap();
        paged.append(a, 5);
        let moves = paged.pool.defragment();
        assert!(!moves.list().is_empty());
        paged.moved(&moves);
        let used = PAGING.pages - paged.pool.free_pages();
        let pages = paged.texts.iter().flat_map(|(id, _)| paged.pool.pages(*id).unwrap());
        assert!(pages.max().unwrap() + 1 == used as u32);
        paged.check();
    }
}

#[test]
fn an_exhausted_pool_loses_nothing() {
    let Some(gpu) = gpu() else { return };
    let mut paged = Paged::new(gpu);
    for text in 0..3 {
        paged.insert();
        paged.append(text, 60);
    }
    assert_eq!(paged.pool.free_pages(), 0);
    let id = paged.texts[0].0;
    let e = paged.pool.append(id, 5).unwrap_err();
    assert!(e.kind() == ErrorKind::OutOfMemory && e.to_string().contains("free a sequence"), "{e}");
    // A fork needs no page until it writes.
    let fork = paged.fork(1);
    let id = paged.texts[fork].0;
    assert_eq!(paged.pool.append(id, 1).unwrap_err().kind(), ErrorKind::OutOfMemory);
    paged.check();
    let (ended, _) = paged.texts.remove(2);
    paged.pool.free(ended).unwrap();
    paged.append(0, 4);
    paged.check();
}

#[test]
fn rejects_invalid_arguments() {
    let Some(gpu) = gpu() else { return };
    let mut pool = PagePool::new(PAGING).unwrap();
    let id = pool.insert();
    let _ = pool.append(id, 40).unwrap();
    let e = pool.upload(gpu, &[id], 39).unwrap_err();
    assert!(e.kind() == ErrorKind::Shape && e.to_string().contains("40 tokens in a table of 39"), "{e}");
    let twin = pool.fork(id).unwrap();
    let moves = pool.append(twin, 1).unwrap();
    let cache = gpu.alloc_zeroed::<f32>(PAGING.pages * 16 + 1).unwrap();
    let e = moves.record(gpu, &mut gpu.recorder(), &cache).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Shape);
    pool.free(id).unwrap();
    assert_eq!(pool.fork(id).unwrap_err().kind(), ErrorKind::InvalidArgument);
}
