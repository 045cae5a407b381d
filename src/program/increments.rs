//! BLAS's increments: vectors whose elements do not lie side by side.

use super::{Access, Binding, DeviceProfile, Grid, Kernel, Operand, Program, Resource, kernel_params};
use crate::element::DType;
use crate::error::{Result, err};
use crate::shader::Spec;
use crate::shape::round_up;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Increments {
    pub(crate) x: isize,
    pub(crate) y: isize,
}

impl Default for Increments {
    fn default() -> Self {
        Self { x: 1, y: 1 }
    }
}

kernel_params! { struct StridedVectorParams { n: u32, origin: u32, step: u32 } }

impl Increments {
    pub(super) fn check(self, op: &str) -> Result<()> {
        for (name, increment) in [("incx", self.x), ("incy", self.y)] {
            if increment == 0 {
                return Err(err!(
                    InvalidArgument,
                    "{op}: {name} is 0; an increment is the distance from one number to the next: give another"
                ));
            }
        }
        Ok(())
    }

    /// Lowers an op whose vectors have these increments by `unit`, which lowers it with increments of 1. Vectors with
    /// others pass through scratch. A number of a vector is `width` elements.
    pub(crate) fn lower(
        self, op: &'static str, width: usize, profile: &DeviceProfile, unit: impl FnOnce() -> Result<Program>,
    ) -> Result<Program> {
        self.check(op)?;
        let unit = unit()?;
        if self == Self::default() {
            return Ok(unit);
        }
        let mut program = Program::new(unit.op, unit.decision.clone());
        (program.cost, program.operands) = (unit.cost, unit.operands.clone());
        for operand in &mut program.operands {
            let step = self.of(operand.name).unsigned_abs();
            if step > 1 && operand.len > 0 {
                let len = (operand.len / width - 1).saturating_mul(step).saturating_add(1);
                operand.len = len.saturating_mul(width);
                if operand.access == Access::Write {
                    operand.access = Access::ReadWrite;
                }
            }
        }
        let remedy = "take parts of the vectors in separate calls";
        if unit.dispatches.is_empty() {
            profile.check_buffers(op, &program.operands, remedy)?;
            return Ok(program);
        }
        let (mut places, mut back) = (Vec::new(), Vec::new());
        for (i, operand) in unit.operands.iter().enumerate() {
            let increment = self.of(operand.name);
            if increment == 1 || operand.len == 0 {
                places.push(Resource::Operand(i));
                continue;
            }
            profile.check_bindings(op, &program.operands[i..=i], remedy)?;
            let dense = program.scratch(round_up(operand.bytes(), 4));
            let given = Binding::operand(i, &program.operands);
            if operand.access != Access::Write {
                move_vector(&mut program, operand, (width, increment), [given, dense], false);
            }
            if operand.access != Access::Read {
                back.push((operand.clone(), increment, [dense, given]));
            }
            places.push(dense.resource);
        }
        program.append(unit, &places);
        for (operand, increment, ends) in back {
            move_vector(&mut program, &operand, (width, increment), ends, true);
        }
        Ok(program)
    }

    pub(super) fn of(self, name: &str) -> isize {
        match name {
            "x" => self.x,
            "y" => self.y,
            _ => 1,
        }
    }
}

/// Adds the dispatch that copies a vector from one end to the other; `back` to its own places.
fn move_vector(
    program: &mut Program, operand: &Operand, (width, increment): (usize, isize), ends: [Binding; 2], back: bool,
) {
    let (n, halves) = (operand.len / width, operand.dtype == DType::F16);
    // Reversed twice is as it was, so that a thread has both halves of a word.
    let scatters = back && increment != -1;
    let spec = Spec::new().flag("HALVES", halves).flag("SCATTERS", scatters);
    let spec = spec.flag("KEEPS", halves && back && !scatters).constant("WIDTH", width as u32);
    let kernel = program.kernel(Kernel::of_file("dispatch/strided_vector", spec));
    // Places are below 2^32, and so are sums modulo 2^32.
    let last = (n - 1) as u32;
    let origin = if increment < 0 { last.wrapping_mul(increment.unsigned_abs() as u32) } else { 0 };
    let params = StridedVectorParams { n: n as u32, origin, step: increment as u32 };
    let words = if halves && !scatters { n.div_ceil(2) } else { n * width };
    program.dispatch(kernel, &params, ends.to_vec(), Grid::fold((words as u64).div_ceil(256)));
}

/// Writes builder methods of a descriptor with `increments`.
macro_rules! increments {
    ($($method:ident $vector:ident),+) => {$(
        #[doc = concat!("Sets how far apart the numbers of `", stringify!($vector), "` lie; 1 by default. It then has")]
        #[doc = concat!("`(n - 1) * abs(", stringify!($method), ") + 1` numbers for n that count; others are not touched.")]
        /// Below 0 the last comes first, as in BLAS; 0 is an error. A vector with another increment than 1 must fit a
        /// binding, and a dispatch each way moves it through scratch.
        #[must_use]
        pub fn $method(mut self, increment: isize) -> Self {
            self.increments.$vector = increment;
            self
        }
    )+};
}
pub(crate) use increments;
