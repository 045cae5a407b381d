use super::Options;
use super::code::{DeclaredMemory, SimCode};
use super::machine::{Bound, SimSpace};
use super::memory::SimMemory;
use crate::program::prelude::*;

/// The initial contents of a buffer.
pub(super) enum Area<'a> {
    Given(&'a [u8]),
    /// A number of bytes, all [`Options::scratch_byte`].
    Scratch(u64),
}

impl Area<'_> {
    pub(super) fn resource(&self, op: &str, options: &Options) -> Result<SimMemory> {
        let len = match self {
            Area::Given(bytes) => bytes.len(),
            Area::Scratch(n) => *n as usize,
        };
        // A uniform is whole vec4s.
        let mut bytes = filled(op, len.max(4).next_multiple_of(16), 0)?;
        match self {
            Area::Given(given) => bytes[..len].copy_from_slice(given),
            Area::Scratch(_) => bytes[..len].fill(options.scratch_byte),
        }
        let unwritten = options.check_scratch && matches!(self, Area::Scratch(_));
        Ok(SimMemory { bytes, unwritten, ..SimMemory::default() })
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Bind {
    pub(super) area: usize,
    pub(super) offset: u64,
    pub(super) size: u64,
}

pub(super) enum LaunchGrid {
    Direct([u32; 3]),
    /// Area and byte offset of the counts.
    Indirect(usize, u64),
}

/// A dispatch whose buffers are given as indices of areas.
pub(super) struct SimLaunch {
    pub(super) kernel: usize,
    /// The bindings of the kernel's variables; `None` for parameters.
    pub(super) bound: Vec<Option<Bind>>,
    pub(super) params: Vec<u8>,
    pub(super) grid: LaunchGrid,
}

impl SimLaunch {
    pub(super) fn of_program(program: &Program, dispatch: &Dispatch, kernels: &[SimCode]) -> Result<Self> {
        let op = program.op;
        let code = kernels.get(dispatch.kernel).ok_or_else(|| {
            err!(InvalidArgument, "{op}: a dispatch names kernel {} of {}", dispatch.kernel, kernels.len())
        })?;
        let area = |resource| {
            let (first, i, n) = match resource {
                Resource::Operand(i) => (0, i, program.operands.len()),
                Resource::Scratch(i) => (program.operands.len(), i, program.scratch.len()),
                Resource::Constant(i) => (program.operands.len() + program.scratch.len(), i, program.constants.len()),
            };
            if i < n { Ok(first + i) } else { Err(err!(InvalidArgument, "{op}: there is no {resource:?}")) }
        };
        let wanted = bindings(code);
        let params = usize::from(!dispatch.params.is_empty());
        if wanted.len() != dispatch.bindings.len() + params {
            let names: Vec<_> = wanted.iter().map(|(_, m)| m.name()).collect();
            return Err(err!(
                InvalidArgument,
                "{op}: {} bindings given; {} takes {}",
                dispatch.bindings.len() + params,
                code.label,
                names.join(", ")
            ));
        }
        let mut bound = vec![None; code.memories.len()];
        for ((at, memory), binding) in wanted.iter().skip(params).zip(&dispatch.bindings) {
            let unit = if matches!(memory, DeclaredMemory::Binding { uniform: true, .. }) { 16 } else { 4 };
            let size = binding.size.max(4).saturating_add(unit - 1) / unit * unit;
            bound[*at] = Some(Bind { area: area(binding.resource)?, offset: binding.offset, size });
        }
        let grid = match dispatch.grid {
            Grid::Direct(workgroups) => LaunchGrid::Direct(workgroups),
            Grid::Indirect { resource, offset } => LaunchGrid::Indirect(area(resource)?, offset),
        };
        Ok(Self { kernel: dispatch.kernel, bound, params: dispatch.params.clone(), grid })
    }

    /// Returns the dispatch's workgroups along each axis.
    pub(super) fn workgroups(&self, op: &str, code: &SimCode, areas: &[SimMemory]) -> Result<[u32; 3]> {
        match self.grid {
            LaunchGrid::Direct(workgroups) => Ok(workgroups),
            LaunchGrid::Indirect(area, offset) => {
                let range = usize::try_from(offset).ok().and_then(|o| Some(o..o.checked_add(12)?));
                let words = areas.get(area).and_then(|a| a.bytes.get(range?));
                let words = words.ok_or_else(|| {
                    err!(InvalidArgument, "{op}: the workgroup counts of {} lie outside their buffer", code.label)
                })?;
                Ok(std::array::from_fn(|i| u32::from_le_bytes(std::array::from_fn(|b| words[4 * i + b]))))
            }
        }
    }

    /// Binds the variables of a kernel; parameters and immediates become areas of their own.
    pub(super) fn bind(
        &self, op: &str, code: &SimCode, areas: &mut Vec<SimMemory>, immediates: &[u8],
    ) -> Result<Vec<Bound>> {
        let own = |areas: &mut Vec<SimMemory>, bytes: &[u8], least: usize| {
            let mut bytes = bytes.to_vec();
            bytes.resize(bytes.len().max(least).next_multiple_of(16), 0);
            areas.push(SimMemory { bytes, ..SimMemory::default() });
            areas.len() - 1
        };
        let mut all = Vec::new();
        for (memory, bind) in code.memories.iter().zip(&self.bound) {
            let bound = match memory {
                DeclaredMemory::Workgroup { base, bytes, .. } => {
                    Bound { space: SimSpace::Workgroup, resource: 0, base: *base, bytes: *bytes, racy: true }
                }
                DeclaredMemory::Immediates { bytes } => {
                    if (immediates.len() as u32) < *bytes {
                        let given = immediates.len();
                        return Err(err!(
                            Shape,
                            "{op}: {given} bytes of immediates given; {} takes {bytes}",
                            code.label
                        ));
                    }
                    let resource = own(areas, immediates, 0);
                    Bound { space: SimSpace::Uniform, resource, base: 0, bytes: *bytes, racy: false }
                }
                DeclaredMemory::Binding { name, min_size, uniform, writable, .. } => {
                    let space = if *uniform { SimSpace::Uniform } else { SimSpace::Storage };
                    let Some(bind) = bind else {
                        let given = self.params.len().next_multiple_of(16);
                        if (given as u32) < *min_size {
                            return Err(err!(
                                InvalidArgument,
                                "{op}: {given} bytes of parameters given; `{name}` of {} has {min_size}",
                                code.label
                            ));
                        }
                        let resource = own(areas, &self.params, 0);
                        all.push(Bound { space, resource, base: 0, bytes: given as u32, racy: false });
                        continue;
                    };
                    let there = areas[bind.area].bytes.len() as u64;
                    let end = bind.offset.checked_add(bind.size).filter(|end| *end <= there);
                    let small = bind.size < u64::from(*min_size);
                    if end.is_none() || small || u32::try_from(there).is_err() {
                        return Err(err!(
                            Shape,
                            "{op}: `{name}` of {} takes at least {min_size} bytes and is bound to {} bytes at byte {} of a \
                             buffer of {there}",
                            code.label,
                            bind.size,
                            bind.offset
                        ));
                    }
                    Bound {
                        space,
                        resource: bind.area,
                        base: bind.offset as u32,
                        bytes: bind.size as u32,
                        racy: *writable,
                    }
                }
            };
            all.push(bound);
        }
        // If one variable may write a buffer, accesses through all its variables can race.
        for i in 0..all.len() {
            let Bound { space, resource, .. } = all[i];
            let written = all.iter().any(|b| b.racy && b.space == space && b.resource == resource);
            all[i].racy |= written && space != SimSpace::Uniform;
        }
        Ok(all)
    }
}

/// Lists the buffers that a kernel binds, with the indices of their variables, by group and number.
pub(super) fn bindings(code: &SimCode) -> Vec<(usize, &DeclaredMemory)> {
    let is_binding = |m: &&DeclaredMemory| matches!(m, DeclaredMemory::Binding { .. });
    let mut all: Vec<_> = code.memories.iter().enumerate().filter(|(_, m)| is_binding(m)).collect();
    all.sort_by_key(|(_, m)| match m {
        DeclaredMemory::Binding { group, index, .. } => (*group, *index),
        _ => (0, 0),
    });
    all
}
