//! Sizes of types: registers of a lane, and bytes in memory.

use super::{Compiler, MAX_SLOTS};
use crate::error::{Result, err};
use crate::sim::code::Width;
use naga::{ArraySize, Handle, Scalar, ScalarKind, Span, Type, TypeInner, VectorSize};

pub(super) struct MemoryPiece {
    pub(super) offset: u32,
    pub(super) n: u32,
    pub(super) width: Width,
}

fn scalar_width(scalar: Scalar) -> Option<Width> {
    match (scalar.kind, scalar.width) {
        (ScalarKind::Bool, _) => Some(Width::Bool),
        (ScalarKind::Float, 2) => Some(Width::Half),
        (_, 4) => Some(Width::Word),
        _ => None,
    }
}

pub(super) fn is_half(scalar: Scalar) -> bool {
    scalar.kind == ScalarKind::Float && scalar.width == 2
}

impl<'a> Compiler<'a> {
    pub(super) fn inner(&self, ty: Handle<Type>) -> &'a TypeInner {
        &self.module.types[ty].inner
    }

    pub(super) fn array_length(&self, size: ArraySize) -> Result<Option<u32>> {
        match size {
            ArraySize::Constant(n) => Ok(Some(n.get())),
            ArraySize::Pending(handle) => match self.module.overrides[handle].init {
                Some(init) => Ok(self.constant_bits(init)?.first().copied()),
                None => Err(err!(Shader, "{}: an array's length is an override without a value", self.code.label)),
            },
            ArraySize::Dynamic => Ok(None),
        }
    }

    pub(super) fn leaves(&self, ty: &TypeInner) -> Result<u32> {
        Ok(match ty {
            TypeInner::Scalar(scalar) | TypeInner::Atomic(scalar) => {
                self.check_scalar(*scalar)?;
                1
            }
            TypeInner::Vector { size, scalar } => {
                self.check_scalar(*scalar)?;
                *size as u32
            }
            TypeInner::Matrix { columns, rows, scalar } => {
                self.check_scalar(*scalar)?;
                *columns as u32 * *rows as u32
            }
            TypeInner::CooperativeMatrix { columns, rows, .. } => (*columns as u32 * *rows as u32).div_ceil(self.lanes),
            TypeInner::Array { base, size, .. } => {
                let n = self.array_length(*size)?.unwrap_or(0);
                let all = u64::from(n) * u64::from(self.leaves(self.inner(*base))?);
                u32::try_from(all)
                    .ok()
                    .filter(|n| *n < MAX_SLOTS)
                    .ok_or_else(|| err!(TooLarge, "{}: an array of {all} values per thread", self.code.label))?
            }
            TypeInner::Struct { members, .. } => {
                let mut sum = 0;
                for member in members {
                    sum += self.leaves(self.inner(member.ty))?;
                    if sum > MAX_SLOTS {
                        return Err(err!(TooLarge, "{}: a struct of {sum} values or more", self.code.label));
                    }
                }
                sum
            }
            TypeInner::Pointer { .. } | TypeInner::ValuePointer { .. } => 1,
            other => return Err(self.unsupported(&format!("the type {other:?}"), Span::UNDEFINED)),
        })
    }

    pub(super) fn check_scalar(&self, scalar: Scalar) -> Result<Width> {
        scalar_width(scalar).ok_or_else(|| {
            let bits = 8 * u32::from(scalar.width);
            err!(Unsupported, "{}: the simulator does not support {bits}-bit {:?}", self.code.label, scalar.kind)
        })
    }

    pub(super) fn column_stride(rows: VectorSize, scalar: Scalar) -> u32 {
        (if rows == VectorSize::Bi { 2 } else { 4 }) * u32::from(scalar.width)
    }

    /// Lists the scalars and vectors of a type in memory.
    pub(super) fn pieces(&self, ty: &TypeInner, offset: u32, out: &mut Vec<MemoryPiece>) -> Result<()> {
        match ty {
            TypeInner::Scalar(scalar) | TypeInner::Atomic(scalar) => {
                out.push(MemoryPiece { offset, n: 1, width: self.check_scalar(*scalar)? });
            }
            TypeInner::Vector { size, scalar } => {
                out.push(MemoryPiece { offset, n: *size as u32, width: self.check_scalar(*scalar)? });
            }
            TypeInner::Matrix { columns, rows, scalar } => {
                let (n, width) = (*rows as u32, self.check_scalar(*scalar)?);
                for column in 0..*columns as u32 {
                    out.push(MemoryPiece { offset: offset + column * Self::column_stride(*rows, *scalar), n, width });
                }
            }
            TypeInner::Array { base, size, stride } => {
                for i in 0..self.array_length(*size)?.unwrap_or(0) {
                    self.pieces(self.inner(*base), offset + i * stride, out)?;
                }
            }
            TypeInner::Struct { members, .. } => {
                for member in members {
                    self.pieces(self.inner(member.ty), offset + member.offset, out)?;
                }
            }
            other => return Err(self.unsupported(&format!("the type {other:?} in memory"), Span::UNDEFINED)),
        }
        Ok(())
    }

    /// Returns the bytes of the smallest component of a type.
    pub(super) fn granule(&self, ty: &TypeInner) -> u32 {
        match ty {
            TypeInner::Scalar(s) | TypeInner::Vector { scalar: s, .. } | TypeInner::Matrix { scalar: s, .. } => {
                u32::from(s.width).min(4)
            }
            TypeInner::Array { base, .. } => self.granule(self.inner(*base)),
            TypeInner::Struct { members, .. } => {
                members.iter().map(|m| self.granule(self.inner(m.ty))).min().unwrap_or(4)
            }
            _ => 4,
        }
    }

    pub(super) fn byte_size(&self, ty: &TypeInner) -> Result<u32> {
        Ok(match ty {
            TypeInner::Array { size, stride, .. } => {
                let n = self.array_length(*size)?.unwrap_or(1);
                n.checked_mul(*stride)
                    .ok_or_else(|| err!(TooLarge, "{}: an array of {n} times {stride} bytes", self.code.label))?
            }
            other => other.size(self.module.to_ctx()),
        })
    }
}
