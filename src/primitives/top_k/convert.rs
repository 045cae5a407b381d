//! Top-k of types that the kernels do not compare: f16 as f32, u64 by its order.

use super::TopK;
use crate::elementwise::{Broadcast, Transform, TransformFn};
use crate::primitives::{Argsort, Gather};
use crate::program::prelude::*;

crate::program::kernel_params! { struct TopKWideParams { n: u32, k: u32, count: u32 } }

impl TopK {
    /// Finds the best of f16 among the same numbers as f32, and copies the elements.
    pub(super) fn lower_halves(&self, profile: &DeviceProfile) -> Result<Program> {
        let top = Op::<f32>::lower(self, profile)?;
        let mut program = self.around(&top, DType::F16, profile)?;
        let widened = program.scratch(4 * self.n.max(1) as u64).resource;
        let found = program.scratch(4 * self.k as u64).resource;
        let convert = Transform::new([1, self.n], TransformFn::Convert).input(DType::F16, Broadcast::Each);
        let convert = Op::<f32>::lower(&convert, profile).map_err(|e| e.context("top-k"))?;
        program.append(convert, &[Resource::Operand(0), widened]);
        let last = program.operands.len() - 1;
        let mut operands: Vec<_> = (0..program.operands.len()).map(Resource::Operand).collect();
        (operands[0], operands[last - 1]) = (widened, found);
        program.append(top, &operands);
        let gather = Gather::new([self.n, 1], self.k).lower_as(DType::F16, profile)?;
        program.append(gather, &[Resource::Operand(0), Resource::Operand(last), Resource::Operand(last - 1)]);
        Ok(program)
    }

    /// Finds the best of u64 by the order of all.
    pub(super) fn lower_words(&self, profile: &DeviceProfile) -> Result<Program> {
        if !["auto", "sort"].contains(&&*self.variant) {
            return Err(err!(
                Unsupported,
                "top-k: the variant `{}` does not take u64; use `sort` or `auto`",
                self.variant
            ));
        }
        let by_sort = TopK { variant: "sort".into(), ..self.clone() };
        let top = Op::<u32>::lower(&by_sort, profile)?;
        let mut program = self.around(&top, DType::U64, profile)?;
        let order = Argsort::new(self.n).when(!self.smallest, Argsort::descending);
        let order = order.when(self.counted, Argsort::counted).lower_as(DType::U64, profile)?;
        let positions = program.scratch(4 * self.n as u64);
        let length = self.counted.then_some(Resource::Operand(1));
        let operands: Vec<_> = [Resource::Operand(0)].into_iter().chain(length).chain([positions.resource]).collect();
        program.append(order, &operands);
        let last = program.operands.len() - 1;
        let pick = program.kernel(Kernel::of_file("primitives/top_k_rows_pick", Spec::new()));
        let (n, k) = (self.n as u32, self.k as u32);
        // The kernel copies words, too; those of the elements come next.
        let unused = program.scratch(4 * u64::from(k));
        let bindings = vec![positions, positions, unused, Binding::operand(last, &program.operands)];
        program.dispatch(pick, &TopKWideParams { n, k, count: k }, bindings, Grid::fold(u64::from(k).div_ceil(256)));
        let gather = Gather::new([self.n, 2], self.k).lower_as(DType::U32, profile)?;
        program.append(gather, &[Resource::Operand(0), Resource::Operand(last), Resource::Operand(last - 1)]);
        Ok(program)
    }

    /// A program with the operands of another whose elements are words.
    fn around(&self, top: &Program, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let mut program = Program::new("top-k", top.decision.clone());
        program.operands = top.operands.clone();
        let last = program.operands.len() - 1;
        (program.operands[0].dtype, program.operands[last - 1].dtype) = (dtype, dtype);
        profile.check_bindings("top-k", &program.operands, "find the best of parts, then of those")?;
        program.cost = Cost::of(self.n as f64, &program.operands);
        Ok(program)
    }
}
