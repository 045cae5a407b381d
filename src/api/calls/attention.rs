use crate::attention::{Attention, AttentionBackward, KvAppend};
use crate::gpu::{Buffer, Gpu, Slice};
use crate::program::prelude::*;

impl Gpu {
    /// Computes `softmax(scale Q K^T) V` of each head into a new buffer: see [`Attention`]. Options with an operand of
    /// their own (mask, lengths, pages, scales) need a plan.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Attention, Gpu};
    ///
    /// let gpu = Gpu::new()?;
    /// let (q, k) = (gpu.upload(&[0.0f32; 8])?, gpu.upload(&[1.0f32; 16])?); // one query, two keys
    /// let v = gpu.upload(&[[1.0f32; 8], [3.0; 8]].concat())?;
    /// let output = gpu.attention(&Attention::new([1, 1, 1, 8], [1, 2]), &q, &k, &v)?;
    /// assert!(output.read()?.iter().all(|x| (x - 2.0).abs() < 1e-5));
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn attention<'a, T: Element, K: Element>(
        &self, attention: &Attention, q: impl Into<Slice<'a, T>>, k: impl Into<Slice<'a, K>>,
        v: impl Into<Slice<'a, K>>,
    ) -> Result<Buffer<T>>
    where
        Attention: Op<T>,
    {
        let given = [("q", q.into().untyped()), ("k", k.into().untyped()), ("v", v.into().untyped())];
        self.call::<T, _>(attention, &given)?.output("output")
    }

    /// Computes the gradients of [`attention`](Gpu::attention) with respect to `q`, `k` and `v` from that of its
    /// output, `dy`, into new buffers `dq`, `dk`, `dv`: see [`AttentionBackward`].
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{AttentionBackward, Gpu};
    ///
    /// let gpu = Gpu::new()?; // one head of size 8, one query, one key, whose weight is 1
    /// let [q, k, v, dy] = [1.0f32, 2.0, 3.0, 4.0].map(|x| gpu.upload(&[x; 8]));
    /// let backward = AttentionBackward::new([1, 1, 1, 8], [1, 1]);
    /// let (dq, dk, dv) = gpu.attention_backward(&backward, &q?, &k?, &v?, &dy?)?;
    /// assert_eq!((dq.read()?, dk.read()?, dv.read()?), (vec![0.0; 8], vec![0.0; 8], vec![4.0; 8]));
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn attention_backward<'a, T: Element>(
        &self, attention: &AttentionBackward, q: impl Into<Slice<'a, T>>, k: impl Into<Slice<'a, T>>,
        v: impl Into<Slice<'a, T>>, dy: impl Into<Slice<'a, T>>,
    ) -> Result<(Buffer<T>, Buffer<T>, Buffer<T>)>
    where
        AttentionBackward: Op<T>,
    {
        let given = [
            ("q", q.into().untyped()),
            ("k", k.into().untyped()),
            ("v", v.into().untyped()),
            ("dy", dy.into().untyped()),
        ];
        self.call::<T, _>(attention, &given)?.three_outputs(["dq", "dk", "dv"])
    }

    /// Appends the keys and values of new tokens to a cache in place, after the `lengths[b]` tokens of each sequence
    /// b: [`KvAppend`], for caches of floats without pages.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::{Gpu, attention::KvAppend};
    ///
    /// let gpu = Gpu::new()?;
    /// let (new_k, new_v) = (gpu.upload(&[1.0f32; 8])?, gpu.upload(&[2.0f32; 8])?); // one token
    /// let (k, v) = (gpu.alloc_zeroed::<f32>(16)?, gpu.alloc_zeroed::<f32>(16)?); // room for two
    /// gpu.kv_append(&KvAppend::new([1, 1, 1, 8], 2), &new_k, &new_v, &gpu.upload(&[1u32])?, &k, &v)?;
    /// assert_eq!(k.read()?, [[0.0; 8], [1.0; 8]].concat());
    /// assert_eq!(v.read()?, [[0.0; 8], [2.0; 8]].concat());
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn kv_append<'a, T: Element, K: Element>(
        &self, append: &KvAppend, new_k: impl Into<Slice<'a, T>>, new_v: impl Into<Slice<'a, T>>,
        lengths: impl Into<Slice<'a, u32>>, k: impl Into<Slice<'a, K>>, v: impl Into<Slice<'a, K>>,
    ) -> Result<()>
    where
        KvAppend: Op<T>,
    {
        let given = [
            ("new_k", new_k.into().untyped()),
            ("new_v", new_v.into().untyped()),
            ("lengths", lengths.into().untyped()),
            ("k", k.into().untyped()),
            ("v", v.into().untyped()),
        ];
        self.call::<T, _>(append, &given)?.run(&[])
    }
}
