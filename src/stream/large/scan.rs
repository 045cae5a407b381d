//! Scans over host data of any length: each chunk continues from the total of those before, which stays on the device.

use super::flow::{Flow, FlowPlans};
use super::{Streamed, append, check_results};
use crate::gpu::{Buffer, Gpu, RawSlice, Recorder, Slice};
use crate::primitives::{Operator, Reducer, Scan};
use crate::program::prelude::*;
use crate::quantize::Cast;
use crate::stream::pipeline::Outcome;
use crate::stream::source::Source;

impl Streamed {
    /// Computes all prefixes, each with its last element: [`Scan`], of f32, f16, i32 and u32.
    ///
    /// # Errors
    /// See [`Streamed`].
    pub fn inclusive_scan<T, O>(&self, input: impl Source<T>, op: O) -> Result<Vec<T>>
    where
        T: Element,
        O: Reducer<T, Output = T> + Clone,
    {
        let mut all = with_room("scan", input.left().unwrap_or(0))?;
        self.inclusive_scan_to(input, op, |chunk| append("scan", &mut all, chunk))?;
        Ok(all)
    }

    /// Computes all prefixes, each without its last element: [`Scan::exclusive`], of f32, f16, i32 and u32. The first
    /// is the identity.
    ///
    /// # Errors
    /// See [`Streamed`].
    pub fn exclusive_scan<T, O>(&self, input: impl Source<T>, op: O) -> Result<Vec<T>>
    where
        T: Element,
        O: Reducer<T, Output = T> + Clone,
    {
        let mut all = with_room("scan", input.left().unwrap_or(0).saturating_add(1))?;
        // The identity, followed by the inclusive scan without its last element.
        let identity = Op::<T>::lower(&Scan::new(op.clone(), 1).exclusive(), &self.gpu.planning_profile())?;
        let (any, first) = (self.gpu.upload(&[T::default()])?, self.gpu.alloc::<T>(1)?);
        let mut rec = self.gpu.recorder();
        let operands = [any.slice(..)?.untyped(), first.slice(..)?.untyped()];
        self.gpu.prepare_lowered(identity)?.record(&mut rec, &operands)?;
        rec.submit()?;
        all.extend(first.read()?);
        self.inclusive_scan_to(input, op, |chunk| append("scan", &mut all, chunk))?;
        all.pop();
        Ok(all)
    }

    /// As [`inclusive_scan`](Self::inclusive_scan); `sink` gets the results chunk by chunk.
    ///
    /// # Errors
    /// See [`Streamed`].
    pub fn inclusive_scan_to<T, O>(
        &self, input: impl Source<T>, op: O, mut sink: impl FnMut(&[T]) -> Outcome + Send,
    ) -> Result<()>
    where
        T: Element,
        O: Reducer<T, Output = T> + Clone,
    {
        check_results("scan", &op.operator())?;
        let mut flow = Flow::carrying(self, "scan", input, &[T::DTYPE.size(); 2])?;
        let mut scans = match T::DTYPE {
            DType::F32 | DType::I32 | DType::U32 => Scans::Words {
                scan: flow.plans(move |profile, n| Op::<T>::lower(&Scan::new(op.clone(), n), profile))?,
                carry: self.gpu.alloc::<T>(1)?,
            },
            DType::F16 => Scans::Halves(Halves::new(&self.gpu, op.operator(), flow.len())?),
            other => {
                return Err(err!(Unsupported, "scan: it takes f32, f16, i32 and u32, not {other}; take one of these"));
            }
        };
        let (elements, prefixes) = (flow.input(), flow.output::<T>(flow.len()));
        flow.run(
            |rec, chunk| {
                let x = chunk.chunk.input(elements)?;
                let y = chunk.chunk.output(prefixes, chunk.n)?;
                scans.record(rec, x, y, chunk.chunk.number() > 0)
            },
            |chunk| sink(&chunk.read(prefixes)?[usize::from(chunk.number() > 0)..]),
        )
    }
}

/// The scans of all chunks, and the total that one passes to the next.
enum Scans<'p, T: Element> {
    /// Types of one word: the total is copied as it is.
    Words {
        scan: FlowPlans<'p>,
        carry: Buffer<T>,
    },
    Halves(Halves<'p>),
}

impl<T: Element> Scans<'_, T> {
    /// Scans `x` into `y`. If it `carries`, the first element is the total of the chunks before.
    fn record(&mut self, rec: &mut Recorder, x: Slice<'_, T>, y: Slice<'_, T>, carries: bool) -> Result<()> {
        match self {
            Self::Words { scan, carry } => {
                if carries {
                    rec.copy(&*carry, x.slice(..1)?)?;
                }
                scan.get(x.len())?.record(rec, &[x.untyped(), y.untyped()])?;
                rec.copy(y.slice(x.len() - 1..)?, &*carry)
            }
            Self::Halves(halves) => halves.record(rec, &x.untyped(), &y.untyped(), x.len(), carries),
        }
    }
}

/// Scans of f16, two of which share a word. They run in f32, so that totals are not rounded.
struct Halves<'p> {
    widen: FlowPlans<'p>,
    scan: FlowPlans<'p>,
    narrow: FlowPlans<'p>,
    /// Elements, prefixes and total of one chunk as f32. Chunks run one after another.
    x: Buffer<f32>,
    y: Buffer<f32>,
    carry: Buffer<f32>,
}

/// The same operator for f32: f16 is combined in f32 anyway.
#[derive(Clone)]
struct Same(Operator);

impl Reducer<f32> for Same {
    type Output = f32;

    fn operator(&self) -> Operator {
        self.0.clone()
    }
}

impl<'p> Halves<'p> {
    fn new(gpu: &'p Gpu, operator: Operator, room: usize) -> Result<Self> {
        let op = Same(operator);
        Ok(Self {
            widen: FlowPlans::new(gpu, room, |profile, n| Op::<f16>::lower(&Cast::new(n), profile))?,
            scan: FlowPlans::new(gpu, room, move |profile, n| Op::<f32>::lower(&Scan::new(op.clone(), n), profile))?,
            narrow: FlowPlans::new(gpu, room, |profile, n| Op::<f32>::lower(&Cast::new(n), profile))?,
            x: gpu.alloc(room)?,
            y: gpu.alloc(room)?,
            carry: gpu.alloc(1)?,
        })
    }

    fn record(
        &mut self, rec: &mut Recorder, input: &RawSlice<'_>, output: &RawSlice<'_>, n: usize, carries: bool,
    ) -> Result<()> {
        let (x, y) = (self.x.slice(..n)?, self.y.slice(..n)?);
        self.widen.get(n)?.record(rec, &[*input, x.untyped()])?;
        if carries {
            rec.copy(&self.carry, x.slice(..1)?)?;
        }
        self.scan.get(n)?.record(rec, &[x.untyped(), y.untyped()])?;
        rec.copy(y.slice(n - 1..)?, &self.carry)?;
        self.narrow.get(n)?.record(rec, &[y.untyped(), *output])
    }
}
