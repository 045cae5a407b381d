//! Operands that cannot be bound where they lie. They are moved through memory of their own: slices that begin at no
//! multiple of the device's alignment, and slices beside others of the same buffer that are written.

use super::Executable;
use crate::gpu::pool::Memory;
use crate::gpu::recorder::{Encoder, Recorder};
use crate::gpu::{Gpu, RawSlice};
use crate::program::prelude::*;
use std::sync::Arc;

kernel_params! { struct MoveSliceParams { bytes: u32, skip: u32 } }

/// The part of a buffer that is bound for a slice: its first word, whole words, and the slice's first byte in them.
#[derive(Clone, Copy)]
struct Window {
    begin: u64,
    words: usize,
    skip: u64,
}

impl Window {
    fn of(slice: &RawSlice<'_>, gpu: &Gpu) -> Self {
        let (start, alignment) = (slice.start(), u64::from(gpu.profile().limits.storage_alignment).max(4));
        let begin = start / alignment * alignment;
        Self { begin, words: (start + slice.bytes() - begin).div_ceil(4) as usize, skip: start - begin }
    }

    fn slice<'a>(self, of: &RawSlice<'a>) -> RawSlice<'a> {
        RawSlice { dtype: DType::U32, offset: self.begin, len: self.words, whole_words: true, ..*of }
    }

    /// The program that moves a slice of so many bytes from or back to its window.
    fn program(self, bytes: u64, back: bool) -> Program {
        let mut program = Program::new("move", Decision::policy("words", "the slice cannot be bound"));
        let own = bytes.div_ceil(4) as usize;
        let lens = if back { [own, self.words] } else { [self.words, own] };
        let operand = |name, len, access| Operand { name, dtype: DType::U32, len, access };
        program.operands = vec![operand("source", lens[0], Access::Read), operand("output", lens[1], Access::Write)];
        program.cost = Cost { flop: 0.0, bytes: 2.0 * bytes as f64 };
        let kernel = program.kernel(Kernel::of_file("dispatch/move_slice", Spec::new().flag("BACK", back)));
        let bindings = [0, 1].map(|i| Binding::operand(i, &program.operands)).to_vec();
        let params = MoveSliceParams { bytes: bytes as u32, skip: self.skip as u32 };
        program.dispatch(kernel, &params, bindings, Grid::fold((own as u64 + 1).div_ceil(256)));
        program
    }
}

/// An operand in memory of its own, and what moves it there and back.
pub(super) struct StagedOperand {
    index: usize,
    memory: Arc<Memory>,
    window: Window,
    there: Option<Executable>,
    back: Option<Executable>,
}

impl Executable {
    /// The operands that must be moved, with memory of their own; none if all can be bound, or if the call has an error
    /// that the checks report.
    pub(super) fn staged(&self, operands: &[RawSlice<'_>]) -> Result<Vec<StagedOperand>> {
        let (declared, limits) = (&self.program.operands, &self.gpu.profile().limits);
        if operands.len() != declared.len() {
            return Ok(Vec::new());
        }
        let alignment = u64::from(limits.storage_alignment).max(1);
        let mut moved: Vec<bool> = operands.iter().map(|o| !o.start().is_multiple_of(alignment)).collect();
        for (i, a) in operands.iter().enumerate() {
            for (j, b) in operands.iter().enumerate().take(i) {
                let read = [i, j].iter().all(|&at| declared[at].access == Access::Read);
                if read || a.is_empty() || b.is_empty() || !a.same_buffer(b) {
                    continue;
                }
                if a.start() < b.start() + b.bytes() && b.start() < a.start() + a.bytes() {
                    return Ok(Vec::new());
                }
                // They lie apart: the smaller one is moved.
                if !moved[i] && !moved[j] {
                    moved[if a.bytes() < b.bytes() { i } else { j }] = true;
                }
            }
        }
        if !moved.contains(&true) {
            return Ok(Vec::new());
        }
        let fits = |(i, slice): (usize, &RawSlice<'_>)| {
            let window = Window::of(slice, &self.gpu);
            let bytes = 4 * window.words as u64;
            let bound = self.uniforms.contains(&i) || self.counts.contains(&i);
            let there = window.begin + bytes <= slice.memory.raw.size;
            let right =
                *slice.gpu == self.gpu && declared[i].check_given(self.program.op, slice.dtype, slice.len).is_ok();
            right && (!moved[i] || !bound && there && bytes <= limits.max_storage_binding)
        };
        if !operands.iter().enumerate().all(fits) {
            return Ok(Vec::new());
        }
        self.check_written(operands)?;
        let mut staged = Vec::new();
        for (index, slice) in operands.iter().enumerate().filter(|(i, _)| moved[*i]) {
            let (window, access) = (Window::of(slice, &self.gpu), declared[index].access);
            let prepare = |wanted: bool, back| {
                let program = window.program(slice.bytes(), back);
                wanted.then(|| self.gpu.prepare_lowered(program)).transpose()
            };
            staged.push(StagedOperand {
                index,
                memory: self.gpu.allocate(slice.bytes().next_multiple_of(4))?,
                window,
                // What an op leaves as it is stays.
                there: prepare(slice.memory.written.get(), false)?,
                back: prepare(access != Access::Read, true)?,
            });
        }
        Ok(staged)
    }

    /// Records the program with these operands in memory of their own.
    pub(super) fn record_staged<E: Encoder>(
        &self, rec: &mut Recorder<E>, operands: &[RawSlice<'_>], staged: &[StagedOperand],
    ) -> Result<()> {
        let mut all = operands.to_vec();
        for StagedOperand { index, memory, .. } in staged {
            all[*index] = RawSlice { gpu: &self.gpu, memory, offset: 0, whole_words: true, ..operands[*index] };
        }
        self.check(&all)?;
        let words = |slice: &RawSlice<'_>| slice.bytes().div_ceil(4) as usize;
        let own = |of: &StagedOperand| {
            let slice = &operands[of.index];
            (of.window.slice(slice), words(slice))
        };
        for of in staged {
            let (window, len) = own(of);
            let memory = RawSlice { dtype: DType::U32, len, ..all[of.index] };
            match &of.there {
                Some(there) => there.record(rec, &[window, memory])?,
                // It may hold anything, as the slice does.
                None => of.memory.written.set(),
            }
        }
        self.record(rec, &all)?;
        for of in staged {
            let (window, len) = own(of);
            let memory = RawSlice { dtype: DType::U32, len, ..all[of.index] };
            if let Some(back) = &of.back {
                back.record(rec, &[memory, window])?;
            }
        }
        Ok(())
    }
}
