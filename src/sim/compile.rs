//! Compiles naga IR to flat instructions: values become lists of registers, and each function has its own registers.

mod body;
mod globals;
mod types;

use super::code::{SimCode, Slot};
use crate::error::{Error, Result, err};
use crate::shader::{Expanded, MAX_THREAD_WORDS};
use naga::valid::ModuleInfo;
use naga::{Block, Function, Handle, Module, Span, Statement};
use std::collections::HashMap;

/// Maximum instructions of a kernel.
const MAX_OPS: usize = 4_000_000;
/// Maximum registers of a lane.
const MAX_SLOTS: u32 = MAX_THREAD_WORDS;
/// Maximum bytes of registers and memory of a workgroup.
const MAX_GROUP_BYTES: u64 = 1 << 29;

/// What a pointer points to: bytes of a variable in memory, or a register.
#[derive(Debug, Clone, Copy)]
struct VarPlace {
    memory: Option<u16>,
    offset: u32,
    at: Slot,
    /// Whether reads before the first write are reported.
    tracked: bool,
}

struct Routine {
    begin: u32,
    arguments: Vec<Vec<Slot>>,
    result: Vec<Slot>,
}

struct Compiler<'a> {
    module: &'a Module,
    text: &'a Expanded,
    lanes: u32,
    track_locals: bool,
    code: SimCode,
    line_starts: Vec<u32>,
    line_index: HashMap<u32, u32>,
    constants: HashMap<u32, Slot>,
    /// Registers reserved for constants; all others come after them.
    room: u32,
    next: Slot,
    routines: HashMap<Handle<Function>, Routine>,
    globals: HashMap<Handle<naga::GlobalVariable>, VarPlace>,
}

pub(super) fn compile(
    module: &Module, info: &ModuleInfo, text: &Expanded, entry: &str, label: &str, lanes: u32, track_locals: bool,
) -> Result<SimCode> {
    // Constants take the first registers. Their number is only known at the end, so retry with more room.
    for room in [64, 512, 4096, 1 << 16] {
        let code = attempt(module, info, text, entry, label.to_owned(), lanes, track_locals, room)?;
        if let Some(code) = code {
            return Ok(code);
        }
    }
    Err(err!(TooLarge, "{label}: the kernel has too many constants for the simulator"))
}

#[allow(clippy::too_many_arguments, reason = "one call, above")]
fn attempt(
    module: &Module, info: &ModuleInfo, text: &Expanded, entry: &str, label: String, lanes: u32, track_locals: bool,
    room: u32,
) -> Result<Option<SimCode>> {
    let names: Vec<_> = module.entry_points.iter().map(|e| e.name.as_str()).collect();
    let index = names
        .iter()
        .position(|n| *n == entry)
        .ok_or_else(|| err!(Shader, "{label}: no entry point `{entry}`; there are: {}", names.join(", ")))?;
    let point = &module.entry_points[index];
    if point.stage != naga::ShaderStage::Compute {
        return Err(err!(Shader, "{label}: the entry point `{entry}` is not a @compute function"));
    }
    let mut line_starts = vec![0];
    line_starts.extend(text.text().bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i as u32 + 1));
    let mut compiler = Compiler {
        module,
        text,
        lanes,
        track_locals,
        code: SimCode {
            ops: Vec::new(),
            marks: Vec::new(),
            tables: Vec::new(),
            entry: 0,
            slots: 0,
            constants: Vec::new(),
            builtins: Vec::new(),
            memories: Vec::new(),
            workgroup_bytes: 0,
            workgroup_granule: 4,
            workgroup_size: point.workgroup_size,
            privates: (0, 0),
            private_values: Vec::new(),
            lines: Vec::new(),
            names: Vec::new(),
            label,
        },
        line_starts,
        line_index: HashMap::new(),
        constants: HashMap::new(),
        room,
        next: room,
        routines: HashMap::new(),
        globals: HashMap::new(),
    };
    compiler.sizes(point)?;
    compiler.global_variables(info.get_entry_point(index))?;
    let mut order = Vec::new();
    callees(&point.function.body, module, &mut order);
    for handle in order {
        let function = &module.functions[handle];
        let routine = compiler.function(function, &info[handle], false)?;
        compiler.routines.insert(handle, routine);
    }
    let entry = compiler.function(&point.function, info.get_entry_point(index), true)?;
    compiler.code.entry = entry.begin;
    compiler.finish()
}

/// Lists the functions that a block calls, callees first.
fn callees(block: &Block, module: &Module, order: &mut Vec<Handle<Function>>) {
    for statement in block {
        match statement {
            Statement::Block(inner) => callees(inner, module, order),
            Statement::If { accept, reject, .. } => {
                callees(accept, module, order);
                callees(reject, module, order);
            }
            Statement::Switch { cases, .. } => cases.iter().for_each(|c| callees(&c.body, module, order)),
            Statement::Loop { body, continuing, .. } => {
                callees(body, module, order);
                callees(continuing, module, order);
            }
            Statement::Call { function, .. } if !order.contains(function) => {
                callees(&module.functions[*function].body, module, order);
                order.push(*function);
            }
            _ => {}
        }
    }
}

impl Compiler<'_> {
    fn finish(mut self) -> Result<Option<SimCode>> {
        if self.constants.len() > self.room as usize {
            return Ok(None);
        }
        self.code.slots = self.next;
        if self.code.slots > MAX_SLOTS || self.code.ops.len() > MAX_OPS {
            return Err(err!(
                TooLarge,
                "{}: {} instructions and {} values per thread; the maxima are {MAX_OPS} and {MAX_SLOTS}",
                self.code.label,
                self.code.ops.len(),
                self.code.slots
            ));
        }
        let bytes = self.code.group_bytes(self.lanes);
        if bytes > MAX_GROUP_BYTES {
            return Err(err!(
                TooLarge,
                "{}: a workgroup of {:?} with {} values per thread takes {bytes} bytes; the simulator has \
                 {MAX_GROUP_BYTES}; make private arrays or the workgroup smaller",
                self.code.label,
                self.code.workgroup_size,
                self.code.slots
            ));
        }
        let mut values = vec![0; self.room as usize];
        for (bits, slot) in &self.constants {
            values[*slot as usize] = *bits;
        }
        self.code.constants = values;
        Ok(Some(self.code))
    }

    /// Rejects a kernel that exceeds the simulator's limits.
    fn check_size(&self, slots: u32) -> Result<()> {
        if self.code.ops.len() > MAX_OPS || slots > MAX_SLOTS {
            return Err(err!(TooLarge, "{}: the kernel is too large for the simulator", self.code.label));
        }
        Ok(())
    }

    fn unsupported(&self, what: &str, span: Span) -> Error {
        let line = span.to_range().map_or(1, |r| self.line_of(r.start as u32));
        let (file, line) = self.text.origin(line);
        err!(Unsupported, "{file}:{line}: the simulator does not support {what}")
    }

    fn line_of(&self, byte: u32) -> u32 {
        self.line_starts.partition_point(|start| *start <= byte) as u32
    }

    fn line(&mut self, span: Span) -> u32 {
        let line = span.to_range().map_or(0, |r| self.line_of(r.start as u32));
        if let Some(known) = self.line_index.get(&line) {
            return *known;
        }
        let (file, at) = self.text.origin(line);
        let place = if line == 0 { (file.to_owned(), 0) } else { (file.to_owned(), at) };
        let index = self.code.lines.iter().position(|l| *l == place).unwrap_or_else(|| {
            self.code.lines.push(place);
            self.code.lines.len() - 1
        });
        self.line_index.insert(line, index as u32);
        index as u32
    }

    fn constant(&mut self, bits: u32) -> Slot {
        let next = self.constants.len() as u32;
        *self.constants.entry(bits).or_insert(next)
    }
}
