//! Compiles variables and pointers: targets, loads and stores.

use super::{Body, ExprValue};
use crate::error::Result;
use crate::sim::code::{Address, Components, INVALID, Instruction, Length, NONE, Slot};
use crate::sim::compile::{Compiler, VarPlace};
use crate::sim::scalar;
use naga::{AtomicFunction, Expression, Handle, ScalarKind, Span, TypeInner};

impl Body<'_, '_> {
    pub(super) fn place(&mut self, handle: Handle<Expression>) -> Result<VarPlace> {
        match self.value(handle)? {
            ExprValue::Place(place) => Ok(place),
            ExprValue::Slots(_) => Err(self.c.unsupported("this pointer", self.span(handle))),
        }
    }

    pub(super) fn pointee(&self, pointer: Handle<Expression>) -> Result<TypeInner> {
        match self.ty(pointer) {
            TypeInner::Pointer { base, .. } => Ok(self.c.inner(*base).clone()),
            TypeInner::ValuePointer { size: Some(size), scalar, .. } => {
                Ok(TypeInner::Vector { size: *size, scalar: *scalar })
            }
            TypeInner::ValuePointer { size: None, scalar, .. } => Ok(TypeInner::Scalar(*scalar)),
            _ => Err(self.c.unsupported("this pointer", self.span(pointer))),
        }
    }

    pub(super) fn pointer_register(&mut self, place: VarPlace, handle: Handle<Expression>) -> Result<Slot> {
        if place.memory.is_some() {
            return Err(self.c.unsupported("pointers to shared memory as arguments", self.span(handle)));
        }
        if place.at == NONE {
            return Ok(self.c.constant(place.offset));
        }
        let (d, by) = (self.one(), self.c.constant(place.offset));
        self.push(Instruction::Row2 { f: scalar::ADD_INTEGER, d, a: place.at, b: by });
        Ok(d)
    }

    /// Returns an indexable type's stride in memory, registers per element, and length.
    fn elements(&self, ty: &TypeInner) -> Result<(u32, u32, Option<u32>)> {
        Ok(match ty {
            TypeInner::Array { base, size, stride } => {
                (*stride, self.c.leaves(self.c.inner(*base))?, self.c.array_length(*size)?)
            }
            TypeInner::Vector { size, scalar } => (u32::from(scalar.width), 1, Some(*size as u32)),
            TypeInner::Matrix { columns, rows, scalar } => {
                (Compiler::column_stride(*rows, *scalar), *rows as u32, Some(*columns as u32))
            }
            _ => return Err(self.c.unsupported("an index into this type", Span::UNDEFINED)),
        })
    }

    pub(super) fn access_index(&mut self, base: Handle<Expression>, index: u32) -> Result<ExprValue> {
        match self.value(base)? {
            ExprValue::Slots(slots) => {
                let (first, n) = match self.ty(base) {
                    TypeInner::Struct { members, .. } => {
                        let mut first = 0;
                        for member in &members[..index as usize] {
                            first += self.c.leaves(self.c.inner(member.ty))?;
                        }
                        (first, self.c.leaves(self.c.inner(members[index as usize].ty))?)
                    }
                    other => {
                        let n = self.elements(other)?.1;
                        (index * n, n)
                    }
                };
                Ok(ExprValue::Slots(slots[first as usize..(first + n) as usize].to_vec()))
            }
            ExprValue::Place(place) => {
                let ty = self.pointee(base)?;
                let in_registers = place.memory.is_none();
                if let TypeInner::Struct { members, .. } = &ty {
                    let mut by = members[index as usize].offset;
                    if in_registers {
                        by = 0;
                        for member in &members[..index as usize] {
                            by += self.c.leaves(self.c.inner(member.ty))?;
                        }
                    }
                    return Ok(ExprValue::Place(VarPlace { offset: place.offset + by, ..place }));
                }
                let (stride, registers, length) = self.elements(&ty)?;
                if length.is_none() {
                    let index = self.c.constant(index);
                    return self.index(place, index, stride, length);
                }
                let by = index * if in_registers { registers } else { stride };
                Ok(ExprValue::Place(VarPlace { offset: place.offset + by, ..place }))
            }
        }
    }

    fn index(&mut self, place: VarPlace, index: Slot, stride: u32, length: Option<u32>) -> Result<ExprValue> {
        let length = match (length, place.memory) {
            (Some(n), _) => Length::Fixed(n),
            (None, Some(memory)) => Length::Bound { memory, offset: place.offset, stride },
            (None, None) => Length::Fixed(INVALID),
        };
        let d = self.one();
        self.push(Instruction::Index { d, base: place.at, index, stride, length });
        Ok(ExprValue::Place(VarPlace { at: d, ..place }))
    }

    pub(super) fn access(&mut self, base: Handle<Expression>, index: Handle<Expression>) -> Result<ExprValue> {
        let index = self.slot(index)?;
        match self.value(base)? {
            ExprValue::Place(place) => {
                let ty = self.pointee(base)?;
                let (stride, registers, length) = self.elements(&ty)?;
                let stride = if place.memory.is_some() { stride } else { registers };
                self.index(place, index, stride, length)
            }
            ExprValue::Slots(slots) => {
                let (_, n, _) = self.elements(self.ty(base))?;
                let n = n as usize;
                let length = (slots.len() / n) as u32;
                let picked = (0..n).map(|component| {
                    let table = self.c.code.tables.len() as u32;
                    self.c.code.tables.extend(slots.iter().skip(component).step_by(n));
                    let d = self.one();
                    self.push(Instruction::Pick { d, index, table, n: length });
                    d
                });
                Ok(ExprValue::Slots(picked.collect()))
            }
        }
    }

    pub(super) fn load(&mut self, pointer: Handle<Expression>, uniform: bool) -> Result<Vec<Slot>> {
        let (place, ty) = (self.place(pointer)?, self.pointee(pointer)?);
        let n = self.c.leaves(&ty)?;
        let d = self.take(n);
        let Some(memory) = place.memory else {
            if place.at == NONE {
                if place.tracked {
                    self.push(Instruction::CheckWritten { d: place.offset, n });
                }
                let from: Vec<_> = (place.offset..place.offset + n).collect();
                self.copy_all(&d, &from);
            } else {
                for (i, d) in d.iter().enumerate() {
                    let offset = place.offset + i as u32;
                    self.push(Instruction::LoadVar { d: *d, at: place.at, offset, tracked: place.tracked });
                }
            }
            return Ok(d);
        };
        let atomic = matches!(ty, TypeInner::Atomic(_));
        let mut pieces = Vec::new();
        self.c.pieces(&ty, place.offset, &mut pieces)?;
        let mut at = 0;
        for piece in pieces {
            let from = Address { memory, at: place.at, offset: piece.offset };
            let from = Components { at: from, n: piece.n, width: piece.width, atomic };
            self.push(Instruction::Load { d: d[at], from, uniform });
            at += piece.n as usize;
        }
        Ok(d)
    }

    pub(super) fn store(&mut self, pointer: Handle<Expression>, value: Handle<Expression>) -> Result<()> {
        let (place, ty) = (self.place(pointer)?, self.pointee(pointer)?);
        let values = self.slots(value)?;
        let Some(memory) = place.memory else {
            // All lanes hold a cooperative matrix together, active or not.
            let whole = matches!(ty, TypeInner::CooperativeMatrix { .. });
            for (i, a) in values.into_iter().enumerate() {
                let d = place.offset + i as u32;
                match (whole, place.at) {
                    (true, NONE) => self.push(Instruction::Row1 { f: scalar::COPY, d, a }),
                    (false, NONE) => self.push(Instruction::Assign { d, a }),
                    (_, at) => self.push(Instruction::StoreVar { at, offset: d, a }),
                }
            }
            return Ok(());
        };
        let atomic = matches!(ty, TypeInner::Atomic(_));
        let mut pieces = Vec::new();
        self.c.pieces(&ty, place.offset, &mut pieces)?;
        let mut at = 0;
        for piece in pieces {
            let mut a = [NONE; 4];
            a[..piece.n as usize].copy_from_slice(&values[at..at + piece.n as usize]);
            at += piece.n as usize;
            let to = Address { memory, at: place.at, offset: piece.offset };
            let to = Components { at: to, n: piece.n, width: piece.width, atomic };
            self.push(Instruction::Store { a, to });
        }
        Ok(())
    }

    pub(super) fn atomic(
        &mut self, pointer: Handle<Expression>, fun: &AtomicFunction, value: Handle<Expression>,
        result: Option<Handle<Expression>>,
    ) -> Result<()> {
        let place = self.place(pointer)?;
        let Some(memory) = place.memory else {
            return Err(self.c.unsupported("atomics in private memory", self.span(pointer)));
        };
        let scalar = match self.pointee(pointer)? {
            TypeInner::Atomic(scalar) => scalar,
            _ => return Err(self.c.unsupported("atomics on this type", self.span(pointer))),
        };
        self.c.check_scalar(scalar)?;
        let a = self.slot(value)?;
        let compare = match fun {
            AtomicFunction::Exchange { compare: Some(compare) } => self.slot(*compare)?,
            _ => NONE,
        };
        let d = self.take(2);
        let exchanged = if compare == NONE { NONE } else { d[1] };
        let to = Address { memory, at: place.at, offset: place.offset };
        let (signed, float) = (scalar.kind == ScalarKind::Sint, scalar.kind == ScalarKind::Float);
        let swap = [compare, exchanged];
        self.push(Instruction::Atomic { fun: *fun, signed, float, d: d[0], to, a, swap });
        if let Some(result) = result {
            let slots = if compare == NONE { vec![d[0]] } else { d };
            self.set(result, slots);
        }
        Ok(())
    }
}
