//! Compiles subgroup operations: cooperative matrices, votes, shuffles, sums.

use super::Body;
use crate::error::Result;
use crate::sim::code::{Address, Instruction, LaneSource, MatrixTile, NONE, Slot};
use crate::sim::compile::types::is_half;
use crate::sim::scalar::Kind;
use naga::{
    CollectiveOperation, CooperativeData, Expression, GatherMode, Handle, ScalarKind, Span, SubgroupOperation,
    TypeInner,
};

impl Body<'_, '_> {
    fn tile(&mut self, data: &CooperativeData, columns: u32, rows: u32) -> Result<(MatrixTile, Address)> {
        let place = self.place(data.pointer)?;
        // The pointer may lead to a scalar, a vector, or an array of either.
        let mut ty = self.pointee(data.pointer)?;
        while let TypeInner::Array { base, .. } = ty {
            ty = self.c.inner(base).clone();
        }
        let (scalar, vector) = match ty {
            TypeInner::Scalar(scalar) => (scalar, 1),
            TypeInner::Vector { size, scalar } => (scalar, size as u32),
            _ => return Err(self.c.unsupported("this cooperative matrix", self.span(data.pointer))),
        };
        let Some(memory) = place.memory else {
            return Err(self.c.unsupported("cooperative matrices in private memory", self.span(data.pointer)));
        };
        let width = self.c.check_scalar(scalar)?;
        let tile = MatrixTile { rows, columns, width, row_major: data.row_major, vector };
        Ok((tile, Address { memory, at: place.at, offset: place.offset }))
    }

    pub(super) fn multiply_tiles(
        &mut self, a: Handle<Expression>, b: Handle<Expression>, c: Handle<Expression>, whole: Handle<Expression>,
    ) -> Result<Vec<Slot>> {
        let TypeInner::CooperativeMatrix { columns: inner, rows, .. } = self.ty(a) else {
            return Err(self.c.unsupported("this matrix product", self.span(whole)));
        };
        let TypeInner::CooperativeMatrix { columns, scalar, .. } = self.ty(c) else {
            return Err(self.c.unsupported("this matrix product", self.span(whole)));
        };
        let (inner, rows, columns, half) = (*inner as u32, *rows as u32, *columns as u32, is_half(*scalar));
        let [a, b, c] = [a, b, c].map(|m| self.slots(m));
        let (a, b, c) = (self.side_by_side(&a?), self.side_by_side(&b?), self.side_by_side(&c?));
        let n = self.c.leaves(self.ty(whole))?;
        let d = self.take(n);
        self.counted(Kind::Fma, Instruction::MultiplyTiles { d: d[0], a, b, c, rows, columns, inner, half });
        Ok(d)
    }

    /// Returns the values in consecutive registers, copied if they are not.
    fn side_by_side(&mut self, slots: &[Slot]) -> Slot {
        if slots.windows(2).all(|pair| pair[1] == pair[0] + 1) {
            return slots[0];
        }
        self.copies(slots)[0]
    }

    pub(super) fn load_tile(
        &mut self, data: &CooperativeData, columns: u32, rows: u32, whole: Handle<Expression>,
    ) -> Result<Vec<Slot>> {
        let (tile, from) = self.tile(data, columns, rows)?;
        let stride = self.slot(data.stride)?;
        let n = self.c.leaves(self.ty(whole))?;
        let d = self.take(n);
        self.push(Instruction::LoadTile { d: d[0], from, stride, tile });
        Ok(d)
    }

    pub(super) fn store_tile(&mut self, target: Handle<Expression>, data: &CooperativeData, span: Span) -> Result<()> {
        let TypeInner::CooperativeMatrix { columns, rows, .. } = self.ty(target) else {
            return Err(self.c.unsupported("this cooperative matrix", span));
        };
        let (tile, to) = self.tile(data, *columns as u32, *rows as u32)?;
        let (values, stride) = (self.slots(target)?, self.slot(data.stride)?);
        let a = self.side_by_side(&values);
        self.push(Instruction::StoreTile { a, to, stride, tile });
        Ok(())
    }

    pub(super) fn ballot(&mut self, predicate: Option<Handle<Expression>>) -> Result<Vec<Slot>> {
        let a = match predicate {
            Some(predicate) => self.slot(predicate)?,
            None => self.c.constant(1),
        };
        let d = self.take(4);
        self.push(Instruction::Ballot { d: d[0], a });
        Ok(d)
    }

    pub(super) fn gather(&mut self, mode: &GatherMode, argument: Handle<Expression>) -> Result<Vec<Slot>> {
        use naga::GatherMode as G;
        let b = match mode {
            G::Broadcast(i) | G::Shuffle(i) | G::ShuffleDown(i) | G::ShuffleUp(i) => self.slot(*i)?,
            G::ShuffleXor(i) | G::QuadBroadcast(i) => self.slot(*i)?,
            G::BroadcastFirst | G::QuadSwap(_) => NONE,
        };
        let all = self.slots(argument)?;
        let gathered = all.into_iter().map(|a| {
            let d = self.one();
            self.push(Instruction::Gather { mode: LaneSource::of(mode), d, a, b });
            d
        });
        Ok(gathered.collect())
    }

    pub(super) fn collective(
        &mut self, op: SubgroupOperation, scan: CollectiveOperation, argument: Handle<Expression>,
    ) -> Result<Vec<Slot>> {
        let all = self.slots(argument)?;
        let scalar = self.scalar_of(argument)?;
        let ty = (scalar.kind, is_half(scalar));
        let counted = if ty.0 == ScalarKind::Float { Kind::Add } else { Kind::Integer };
        let collected = all.into_iter().map(|a| {
            let d = self.one();
            self.counted(counted, Instruction::Collective { op, scan, ty, d, a });
            d
        });
        Ok(collected.collect())
    }
}
