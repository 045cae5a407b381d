//! Compiles module scope: constants, workgroup size, variables.

use super::{Compiler, VarPlace};
use crate::error::{Result, err};
use crate::sim::code::{DeclaredMemory, NONE};
use naga::valid::FunctionInfo;
use naga::{AddressSpace, Expression, Handle, Literal, Span, StorageAccess};

/// Maximum bytes of workgroup memory: several times that of any device.
const MAX_WORKGROUP_BYTES: u32 = 1 << 20;

impl Compiler<'_> {
    pub(super) fn sizes(&mut self, point: &naga::EntryPoint) -> Result<()> {
        for (axis, size) in point.workgroup_size_overrides.iter().flatten().enumerate() {
            if let Some(handle) = size {
                self.code.workgroup_size[axis] = self.constant_bits(*handle)?.first().copied().unwrap_or(1);
            }
        }
        let threads: u128 = self.code.workgroup_size.iter().map(|n| u128::from(*n)).product();
        if threads == 0 || threads > 1024 {
            let (label, size) = (&self.code.label, self.code.workgroup_size);
            return Err(err!(TooLarge, "{label}: a workgroup of {size:?} threads; use 1 to 1024 in all"));
        }
        Ok(())
    }

    pub(super) fn constant_bits(&self, handle: Handle<Expression>) -> Result<Vec<u32>> {
        match &self.module.global_expressions[handle] {
            Expression::Literal(literal) => self.literal(*literal).map(|bits| vec![bits]),
            Expression::Constant(c) => self.constant_bits(self.module.constants[*c].init),
            Expression::ZeroValue(ty) => Ok(vec![0; self.leaves(self.inner(*ty))? as usize]),
            Expression::Compose { components, .. } => {
                let parts = components.iter().map(|c| self.constant_bits(*c)).collect::<Result<Vec<_>>>()?;
                Ok(parts.concat())
            }
            Expression::Splat { size, value } => Ok(self.constant_bits(*value)?.repeat(*size as usize)),
            Expression::Override(o) => match self.module.overrides[*o].init {
                Some(init) => self.constant_bits(init),
                None => {
                    let name = self.module.overrides[*o].name.clone().unwrap_or_default();
                    Err(err!(
                        Shader,
                        "{}: the override `{name}` has no value; give it one in the text",
                        self.code.label
                    ))
                }
            },
            _ => Err(self.unsupported(
                "an expression of overrides; write the value as a const",
                self.module.global_expressions.get_span(handle),
            )),
        }
    }

    pub(super) fn literal(&self, literal: Literal) -> Result<u32> {
        Ok(match literal {
            Literal::F32(x) => x.to_bits(),
            Literal::F16(x) => x.to_f32().to_bits(),
            Literal::U32(x) => x,
            Literal::I32(x) => x as u32,
            Literal::Bool(x) => u32::from(x),
            other => {
                return Err(self.unsupported(&format!("a value of the type of {other:?}"), Span::UNDEFINED));
            }
        })
    }

    pub(super) fn global_variables(&mut self, info: &FunctionInfo) -> Result<()> {
        let first = self.next;
        for (handle, var) in self.module.global_variables.iter() {
            if info[handle].is_empty() {
                continue;
            }
            let ty = self.inner(var.ty);
            let name = var.name.clone().unwrap_or_default();
            let span = self.module.global_variables.get_span(handle);
            let memory = match var.space {
                AddressSpace::Private => {
                    let n = self.leaves(ty)?;
                    let at = self.next;
                    self.next += n;
                    self.check_size(self.next)?;
                    self.code.names.push((at, n, name));
                    if let Some(init) = var.init {
                        for (i, bits) in self.constant_bits(init)?.into_iter().enumerate() {
                            let value = self.constant(bits);
                            self.code.private_values.push((at + i as u32, value));
                        }
                    }
                    self.globals.insert(handle, VarPlace { memory: None, offset: at, at: NONE, tracked: true });
                    continue;
                }
                AddressSpace::WorkGroup => {
                    let bytes = self.byte_size(ty)?;
                    let base = self.code.workgroup_bytes.next_multiple_of(16);
                    if bytes > MAX_WORKGROUP_BYTES - base {
                        return Err(err!(
                            TooLarge,
                            "{}: {bytes} bytes of workgroup memory in `{name}`; the simulator has \
                             {MAX_WORKGROUP_BYTES} in all, and devices less",
                            self.code.label
                        ));
                    }
                    self.code.workgroup_bytes = base + bytes;
                    self.code.workgroup_granule = self.code.workgroup_granule.min(self.granule(ty));
                    DeclaredMemory::Workgroup { name, base, bytes }
                }
                AddressSpace::Uniform | AddressSpace::Storage { .. } => {
                    let Some(binding) = var.binding else {
                        return Err(self.unsupported("a buffer without @group and @binding", span));
                    };
                    let writable =
                        matches!(var.space, AddressSpace::Storage { access } if access.contains(StorageAccess::STORE));
                    DeclaredMemory::Binding {
                        index: binding.binding,
                        group: binding.group,
                        name,
                        writable,
                        uniform: var.space == AddressSpace::Uniform,
                        min_size: self.byte_size(ty)?,
                        granule: self.granule(ty),
                        line: self.line(span),
                    }
                }
                AddressSpace::Immediate => DeclaredMemory::Immediates { bytes: self.byte_size(ty)? },
                _ => return Err(self.unsupported("textures and samplers", span)),
            };
            let index = self.code.memories.len() as u16;
            self.code.memories.push(memory);
            self.globals.insert(handle, VarPlace { memory: Some(index), offset: 0, at: NONE, tracked: false });
        }
        self.code.privates = (first, self.next - first);
        Ok(())
    }
}
