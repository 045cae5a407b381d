//! Attention with what it was asked to read beside q, k and v.

use super::Plan;
use crate::attention::{Appended, Attended};
use crate::element::Element;
use crate::error::{Result, err};
use crate::gpu::{Encoder, RawSlice, Recorder, Slice};

/// What an [`Attention`](crate::attention::Attention) reads beside q, k and v, and a [`KvAppend`](crate::attention::KvAppend)
/// beside the tokens and the cache: nothing, unless it was asked for.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::attention::Attention;
/// use tilework::prelude::*;
/// use tilework::AttentionExtras;
///
/// let gpu = Gpu::new()?;
/// let op = Attention::new(1, 1, 1, 1, 4, 8).lengths();
/// let plan = op.plan::<f32>(&gpu)?;
/// let (q, kv) = (gpu.upload(&[0.0f32; 8])?, gpu.upload(&[5.0f32; 32])?);
/// let (lengths, output) = (gpu.upload(&[3u32])?, gpu.alloc::<f32>(8)?);
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &q, &kv, &kv, AttentionExtras::new().lengths(&lengths), &output)?;
/// rec.submit()?;
/// assert_eq!(output.read()?, [5.0; 8]);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct AttentionExtras<'a> {
    scales: Option<RawSlice<'a>>,
    table: Option<RawSlice<'a>>,
    lengths: Option<RawSlice<'a>>,
    mask: Option<RawSlice<'a>>,
}

impl<'a> AttentionExtras<'a> {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Factors of the rows of quantised k, then of those of v.
    #[must_use]
    pub fn scales(mut self, scales: impl Into<Slice<'a, f32>>) -> Self {
        self.scales = Some(scales.into().untyped());
        self
    }

    /// Pages of each sequence.
    #[must_use]
    pub fn table(mut self, table: impl Into<Slice<'a, u32>>) -> Self {
        self.table = Some(table.into().untyped());
        self
    }

    /// Keys in use of each sequence.
    #[must_use]
    pub fn lengths(mut self, lengths: impl Into<Slice<'a, u32>>) -> Self {
        self.lengths = Some(lengths.into().untyped());
        self
    }

    /// What is added to scores.
    #[must_use]
    pub fn mask(mut self, mask: impl Into<Slice<'a, f32>>) -> Self {
        self.mask = Some(mask.into().untyped());
        self
    }

    /// In the order in which an attention has them.
    fn named(self) -> [(&'static str, Option<RawSlice<'a>>); 4] {
        [("scales", self.scales), ("table", self.table), ("lengths", self.lengths), ("mask", self.mask)]
    }
}

impl<T: Element> Plan<Attended<T>> {
    /// Records the op; see the errors at [`Plan`].
    ///
    /// # Errors
    /// See [`Plan`]; [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if `extras` lacks what was asked for, or has
    /// what was not.
    pub fn record<'a, K: Element, Enc: Encoder>(
        &self,
        rec: &mut Recorder<Enc>,
        q: impl Into<Slice<'a, T>>,
        k: impl Into<Slice<'a, K>>,
        v: impl Into<Slice<'a, K>>,
        extras: AttentionExtras<'a>,
        output: impl Into<Slice<'a, T>>,
    ) -> Result<()> {
        let mut operands = vec![q.into().untyped(), k.into().untyped(), v.into().untyped()];
        operands.extend(self.extras(extras)?.into_iter().flatten());
        operands.push(output.into().untyped());
        self.executable.record(rec, &operands)
    }
}

impl<T: Element> Plan<Appended<T>> {
    /// Records the op, which takes `lengths`, and `table` and `scales` where it was asked for; see the errors at [`Plan`].
    ///
    /// # Errors
    /// As [`record`](Plan::<Attended<T>>::record) of an attention.
    pub fn record<'a, K: Element, Enc: Encoder>(
        &self,
        rec: &mut Recorder<Enc>,
        new_k: impl Into<Slice<'a, T>>,
        new_v: impl Into<Slice<'a, T>>,
        extras: AttentionExtras<'a>,
        k: impl Into<Slice<'a, K>>,
        v: impl Into<Slice<'a, K>>,
    ) -> Result<()> {
        let [scales, table, lengths, _] = self.extras(extras)?;
        let mut operands = vec![new_k.into().untyped(), new_v.into().untyped()];
        operands.extend(table.into_iter().chain(lengths));
        operands.extend([k.into().untyped(), v.into().untyped()]);
        operands.extend(scales);
        self.executable.record(rec, &operands)
    }
}

impl<S> Plan<S> {
    /// The extras, if they are those that the program wants.
    fn extras<'a>(&self, extras: AttentionExtras<'a>) -> Result<[Option<RawSlice<'a>>; 4]> {
        let program = self.executable.program();
        let wants = |name| program.operands.iter().any(|o| o.name == name);
        for (name, given) in extras.named() {
            if wants(name) != given.is_some() {
                let (has, remedy) = if wants(name) {
                    ("wants", "give it in AttentionExtras")
                } else {
                    ("does not take", "leave it out, or ask for it when the op is described")
                };
                return Err(err!(
                    InvalidArgument,
                    "{}: the plan {has} an operand {name}; {remedy}",
                    program.op
                ));
            }
        }
        Ok(extras.named().map(|(_, given)| given))
    }
}
