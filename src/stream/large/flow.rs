//! The flow of all streamed ops: sources fill chunks of one length, kernels run on each, and outputs are drained.

use super::Streamed;
use crate::gpu::{Executable, Gpu, RawSlice, Recorder};
use crate::program::prelude::*;
use crate::stream::chunk::{Chunk, Drained, Fill, Input, Output};
use crate::stream::pipeline::{Outcome, Pipeline};
use crate::stream::source::{Feed, Source};
use crate::tune::{lower_known, lower_on};

type LowerLen<'p> = dyn Fn(&DeviceProfile, usize) -> Result<Program> + 'p;

/// The kernels of all chunks. Only the first and the last chunk may differ in length.
pub(super) struct FlowPlans<'p> {
    gpu: &'p Gpu,
    lower: Box<LowerLen<'p>>,
    ready: Vec<(usize, Executable)>,
}

impl<'p> FlowPlans<'p> {
    /// Plans for chunks of `len` elements: an op's errors come before anything runs, and tuning measures an idle
    /// device.
    pub(super) fn new(
        gpu: &'p Gpu, len: usize, lower: impl Fn(&DeviceProfile, usize) -> Result<Program> + 'p,
    ) -> Result<Self> {
        let program = lower_on(gpu, &|profile| lower(profile, len))?;
        let ready = vec![(len, gpu.prepare_lowered(program)?)];
        Ok(Self { gpu, lower: Box::new(lower), ready })
    }

    pub(super) fn get(&mut self, len: usize) -> Result<&Executable> {
        let at = match self.ready.iter().position(|(n, _)| *n == len) {
            Some(at) => at,
            None => {
                self.ready.truncate(2);
                let program = lower_known(self.gpu, &|profile| (self.lower)(profile, len))?;
                self.ready.insert(0, (len, self.gpu.prepare_lowered(program)?));
                0
            }
        };
        Ok(&self.ready[at].1)
    }
}

/// Fills a chunk and returns the number of elements. The flag says whether the chunk begins with a carried element.
type FillChunk<'s> = Box<dyn FnMut(&mut Fill<'_>, bool) -> Outcome<usize> + Send + 's>;

type RawInput = Box<dyn for<'c> Fn(&Chunk<'c>) -> Result<RawSlice<'c>>>;

fn fill_from<'s, T: Element>(input: Input<T>, mut feed: Feed<impl Source<T> + 's>) -> FillChunk<'s> {
    Box::new(move |chunk, carries| {
        let mut space = chunk.space(input)?;
        let carried = usize::from(carries);
        space.extend(&[T::default()][..carried])?;
        feed.fill(&mut space)?;
        Ok(space.len() - carried)
    })
}

fn raw_input<T: Element>(input: Input<T>) -> RawInput {
    Box::new(move |chunk| Ok(chunk.input(input)?.untyped()))
}

/// A streamed op: its sources and the pipeline. All chunks but the last are full.
pub(super) struct Flow<'s, T> {
    streamed: &'s Streamed,
    op: &'static str,
    /// Elements left in the first source, if known.
    left: Option<usize>,
    len: usize,
    /// Whether the device puts a carried element at the front of all chunks but the first.
    carries: bool,
    pipeline: Pipeline,
    input: Input<T>,
    inputs: Vec<RawInput>,
    fill: FillChunk<'s>,
}

impl<'s, T: Element> Flow<'s, T> {
    /// Starts from one source. The op's inputs and outputs have `sizes` bytes per element.
    pub(super) fn new(
        streamed: &'s Streamed, op: &'static str, source: impl Source<T> + 's, sizes: &[usize],
    ) -> Result<Self> {
        Self::start(streamed, op, source, sizes, false)
    }

    /// As [`new`](Self::new), for an op that carries an element from chunk to chunk.
    pub(super) fn carrying(
        streamed: &'s Streamed, op: &'static str, source: impl Source<T> + 's, sizes: &[usize],
    ) -> Result<Self> {
        Self::start(streamed, op, source, sizes, true)
    }

    fn start(
        streamed: &'s Streamed, op: &'static str, source: impl Source<T> + 's, sizes: &[usize], carries: bool,
    ) -> Result<Self> {
        let feed = Feed::new(op, source, &streamed.cancel);
        let left = feed.announced();
        // A chunk must hold more than the carried element.
        let len = streamed.chunk_len(op, left, sizes)?.max(1 + usize::from(carries));
        let mut pipeline = streamed.pipeline(left, len);
        let input = pipeline.input::<T>(len);
        let (inputs, fill) = (vec![raw_input(input)], fill_from(input, feed));
        Ok(Self { streamed, op, left, len, carries, pipeline, input, inputs, fill })
    }

    /// Adds a second source of the same length.
    pub(super) fn beside<U: Element>(mut self, source: impl Source<U> + 's) -> Self {
        let input = self.pipeline.input::<U>(self.len);
        let (op, mut first) = (self.op, self.fill);
        let mut second = fill_from(input, Feed::new(op, source, &self.streamed.cancel));
        self.inputs.push(raw_input(input));
        self.fill = Box::new(move |chunk, carries| {
            let (n, beside) = (first(chunk, carries)?, second(chunk, carries)?);
            same_length(op, n, beside)?;
            Ok(n)
        });
        self
    }

    pub(super) fn left(&self) -> Option<usize> {
        self.left
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn input(&self) -> Input<T> {
        self.input
    }

    pub(super) fn plans(&self, lower: impl Fn(&DeviceProfile, usize) -> Result<Program> + 's) -> Result<FlowPlans<'s>> {
        FlowPlans::new(&self.streamed.gpu, self.len, lower)
    }

    /// Declares an output with `len` elements per chunk.
    pub(super) fn output<U: Element>(&mut self, len: usize) -> Output<U> {
        self.pipeline.output(len)
    }

    /// Runs chunks until the sources end: `record` records each chunk's kernels, `drain` takes its outputs.
    pub(super) fn run(
        &mut self, mut record: impl FnMut(&mut Recorder, &FlowChunk<'_, '_>) -> Result<()>,
        drain: impl FnMut(&Drained<'_>) -> Outcome + Send,
    ) -> Result<()> {
        let Self { carries, pipeline, input, inputs, fill, .. } = self;
        let (carries, input) = (*carries, *input);
        pipeline.run(
            |chunk| {
                let carries = carries && chunk.number() > 0;
                Ok(fill(chunk, carries)? > 0)
            },
            |rec, chunk| {
                let n = chunk.input(input)?.len();
                let inputs = inputs.iter().map(|input| input(chunk)).collect::<Result<_>>()?;
                Ok(record(rec, &FlowChunk { chunk, inputs, n })?)
            },
            drain,
        )?;
        Ok(())
    }
}

/// A chunk of a [`Flow`] whose kernels are to be recorded.
pub(super) struct FlowChunk<'a, 'c> {
    pub(super) chunk: &'a Chunk<'c>,
    inputs: Vec<RawSlice<'c>>,
    /// Elements of each input.
    pub(super) n: usize,
}

impl<'c> FlowChunk<'_, 'c> {
    pub(super) fn output<U: Element>(&self, output: Output<U>, len: usize) -> Result<RawSlice<'c>> {
        Ok(self.chunk.output(output, len)?.untyped())
    }

    pub(super) fn record(&self, rec: &mut Recorder, plans: &mut FlowPlans<'_>, outputs: &[RawSlice<'c>]) -> Result<()> {
        let operands = [&self.inputs[..], outputs].concat();
        plans.get(self.n)?.record(rec, &operands)
    }
}

fn same_length(op: &str, a: usize, b: usize) -> Result<()> {
    if a == b {
        return Ok(());
    }
    Err(err!(
        Shape,
        "{op}: one source gave {a} elements for this chunk and the other {b}; they must have the same length"
    ))
}
