//! naga IR to flat instructions: values are lists of registers, functions have registers of their own.

use super::code::{Address, Code, Gather, INVALID, Length, Mark, Memory, NONE, Op, Slot, Tile, Width};
use super::scalar::{self, Kind, Row1, Row2, Row3};
use crate::error::{Error, Result, err};
use crate::shader::{Expanded, MAX_THREAD_WORDS};
use naga::proc::TypeResolution;
use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{
    AddressSpace, ArraySize, AtomicFunction, Binding, Block, Expression, Function, Handle, Literal,
    MathFunction, Module, Scalar, ScalarKind, Span, Statement, StorageAccess, SwitchValue, Type, TypeInner,
    UnaryOperator, VectorSize,
};
use std::collections::HashMap;

/// Most instructions of a kernel.
const MOST_OPS: usize = 4_000_000;
/// Most registers of a lane.
const MOST_SLOTS: u32 = MAX_THREAD_WORDS;
/// Most bytes of workgroup memory: some times what any device has.
const MOST_WORKGROUP_BYTES: u32 = 1 << 20;
/// Most bytes of registers and memory of a workgroup.
const MOST_GROUP_BYTES: u64 = 1 << 29;

/// What an expression stands for.
#[derive(Debug, Clone)]
enum Value {
    Slots(Vec<Slot>),
    Place(Place),
}

/// Where a pointer points: bytes of a variable in memory, or a register.
#[derive(Debug, Clone, Copy)]
struct Place {
    memory: Option<u16>,
    offset: u32,
    at: Slot,
    /// Whether reads of what nothing wrote are looked for.
    tracked: bool,
}

/// A scalar or vector in memory.
struct Piece {
    offset: u32,
    n: u32,
    width: Width,
}

struct Routine {
    begin: u32,
    arguments: Vec<Vec<Slot>>,
    result: Vec<Slot>,
}

pub(super) struct Compiler<'a> {
    module: &'a Module,
    text: &'a Expanded,
    lanes: u32,
    track_locals: bool,
    code: Code,
    line_starts: Vec<u32>,
    line_index: HashMap<u32, u32>,
    constants: HashMap<u32, Slot>,
    /// Registers for constants; those from there on are for the rest.
    room: u32,
    next: Slot,
    routines: HashMap<Handle<Function>, Routine>,
    globals: HashMap<Handle<naga::GlobalVariable>, Place>,
}

/// Compiles an entry point for subgroups of `lanes`.
pub(super) fn compile(
    module: &Module,
    info: &ModuleInfo,
    text: &Expanded,
    entry: &str,
    label: &str,
    lanes: u32,
    track_locals: bool,
) -> Result<Code> {
    // Constants have the first registers; how many there are is known at the end.
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
    module: &Module,
    info: &ModuleInfo,
    text: &Expanded,
    entry: &str,
    label: String,
    lanes: u32,
    track_locals: bool,
    room: u32,
) -> Result<Option<Code>> {
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
    line_starts
        .extend(text.text().bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i as u32 + 1));
    let mut compiler = Compiler {
        module,
        text,
        lanes,
        track_locals,
        code: Code {
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

/// Functions that a block calls, each after those that it calls itself.
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

fn scalar_width(scalar: Scalar) -> Option<Width> {
    match (scalar.kind, scalar.width) {
        (ScalarKind::Bool, _) => Some(Width::Bool),
        (ScalarKind::Float, 2) => Some(Width::Half),
        (_, 4) => Some(Width::Word),
        _ => None,
    }
}

fn is_half(scalar: Scalar) -> bool {
    scalar.kind == ScalarKind::Float && scalar.width == 2
}

impl<'a> Compiler<'a> {
    fn finish(mut self) -> Result<Option<Code>> {
        if self.constants.len() > self.room as usize {
            return Ok(None);
        }
        self.code.slots = self.next;
        if self.code.slots > MOST_SLOTS || self.code.ops.len() > MOST_OPS {
            return Err(err!(
                TooLarge,
                "{}: {} instructions and {} values an invocation; the most are {MOST_OPS} and {MOST_SLOTS}",
                self.code.label,
                self.code.ops.len(),
                self.code.slots
            ));
        }
        let bytes = self.code.group_bytes(self.lanes);
        if bytes > MOST_GROUP_BYTES {
            return Err(err!(
                TooLarge,
                "{}: a workgroup of {:?} with {} values an invocation takes {bytes} bytes; the simulator has \
                 {MOST_GROUP_BYTES}; make private arrays or the workgroup smaller",
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

    /// Refuses a kernel that grows beyond what the simulator holds.
    fn check_size(&self, slots: u32) -> Result<()> {
        if self.code.ops.len() > MOST_OPS || slots > MOST_SLOTS {
            return Err(err!(TooLarge, "{}: the kernel is too large for the simulator", self.code.label));
        }
        Ok(())
    }

    fn unsupported(&self, what: &str, span: Span) -> Error {
        let line = span.to_range().map_or(1, |r| self.line_of(r.start as u32));
        let (file, line) = self.text.origin(line);
        err!(Unsupported, "{file}:{line}: the simulator has no {what}")
    }

    fn line_of(&self, byte: u32) -> u32 {
        self.line_starts.partition_point(|start| *start <= byte) as u32
    }

    /// Index of the line that a span begins on.
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

    fn inner(&self, ty: Handle<Type>) -> &'a TypeInner {
        &self.module.types[ty].inner
    }

    /// Values that a global expression stands for.
    fn constant_bits(&self, handle: Handle<Expression>) -> Result<Vec<u32>> {
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
                "expression of overrides; write the value as a const",
                self.module.global_expressions.get_span(handle),
            )),
        }
    }

    fn literal(&self, literal: Literal) -> Result<u32> {
        Ok(match literal {
            Literal::F32(x) => x.to_bits(),
            Literal::F16(x) => x.to_f32().to_bits(),
            Literal::U32(x) => x,
            Literal::I32(x) => x as u32,
            Literal::Bool(x) => u32::from(x),
            other => {
                return Err(self.unsupported(&format!("value of the type of {other:?}"), Span::UNDEFINED));
            }
        })
    }

    /// Workgroup size, of constants or overrides.
    fn sizes(&mut self, point: &naga::EntryPoint) -> Result<()> {
        for (axis, size) in point.workgroup_size_overrides.iter().flatten().enumerate() {
            if let Some(handle) = size {
                self.code.workgroup_size[axis] = self.constant_bits(*handle)?.first().copied().unwrap_or(1);
            }
        }
        let invocations: u128 = self.code.workgroup_size.iter().map(|n| u128::from(*n)).product();
        if invocations == 0 || invocations > 1024 {
            let (label, size) = (&self.code.label, self.code.workgroup_size);
            return Err(err!(TooLarge, "{label}: {size:?} invocations a workgroup; there are 1 to 1024"));
        }
        Ok(())
    }

    fn array_length(&self, size: ArraySize) -> Result<Option<u32>> {
        match size {
            ArraySize::Constant(n) => Ok(Some(n.get())),
            ArraySize::Pending(handle) => match self.module.overrides[handle].init {
                Some(init) => Ok(self.constant_bits(init)?.first().copied()),
                None => {
                    Err(err!(Shader, "{}: an array's length is an override without value", self.code.label))
                }
            },
            ArraySize::Dynamic => Ok(None),
        }
    }

    /// Registers that a value takes.
    fn leaves(&self, ty: &TypeInner) -> Result<u32> {
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
            TypeInner::CooperativeMatrix { columns, rows, .. } => {
                (*columns as u32 * *rows as u32).div_ceil(self.lanes)
            }
            TypeInner::Array { base, size, .. } => {
                let n = self.array_length(*size)?.unwrap_or(0);
                let all = u64::from(n) * u64::from(self.leaves(self.inner(*base))?);
                u32::try_from(all).ok().filter(|n| *n < MOST_SLOTS).ok_or_else(|| {
                    err!(TooLarge, "{}: an array of {all} values in an invocation", self.code.label)
                })?
            }
            TypeInner::Struct { members, .. } => {
                let mut sum = 0;
                for member in members {
                    sum += self.leaves(self.inner(member.ty))?;
                    if sum > MOST_SLOTS {
                        return Err(err!(TooLarge, "{}: a struct of {sum} values or more", self.code.label));
                    }
                }
                sum
            }
            TypeInner::Pointer { .. } | TypeInner::ValuePointer { .. } => 1,
            other => return Err(self.unsupported(&format!("type {other:?}"), Span::UNDEFINED)),
        })
    }

    fn check_scalar(&self, scalar: Scalar) -> Result<Width> {
        scalar_width(scalar).ok_or_else(|| {
            let bits = 8 * u32::from(scalar.width);
            err!(Unsupported, "{}: the simulator has no {bits}-bit {:?}", self.code.label, scalar.kind)
        })
    }

    fn column_stride(rows: VectorSize, scalar: Scalar) -> u32 {
        (if rows == VectorSize::Bi { 2 } else { 4 }) * u32::from(scalar.width)
    }

    /// Scalars and vectors of a type in memory.
    fn pieces(&self, ty: &TypeInner, offset: u32, out: &mut Vec<Piece>) -> Result<()> {
        match ty {
            TypeInner::Scalar(scalar) | TypeInner::Atomic(scalar) => {
                out.push(Piece { offset, n: 1, width: self.check_scalar(*scalar)? });
            }
            TypeInner::Vector { size, scalar } => {
                out.push(Piece { offset, n: *size as u32, width: self.check_scalar(*scalar)? });
            }
            TypeInner::Matrix { columns, rows, scalar } => {
                let (n, width) = (*rows as u32, self.check_scalar(*scalar)?);
                for column in 0..*columns as u32 {
                    out.push(Piece {
                        offset: offset + column * Self::column_stride(*rows, *scalar),
                        n,
                        width,
                    });
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
            other => return Err(self.unsupported(&format!("type {other:?} in memory"), Span::UNDEFINED)),
        }
        Ok(())
    }

    /// Bytes of the smallest component of a type.
    fn granule(&self, ty: &TypeInner) -> u32 {
        match ty {
            TypeInner::Scalar(s)
            | TypeInner::Vector { scalar: s, .. }
            | TypeInner::Matrix { scalar: s, .. } => u32::from(s.width).min(4),
            TypeInner::Array { base, .. } => self.granule(self.inner(*base)),
            TypeInner::Struct { members, .. } => {
                members.iter().map(|m| self.granule(self.inner(m.ty))).min().unwrap_or(4)
            }
            _ => 4,
        }
    }

    fn byte_size(&self, ty: &TypeInner) -> Result<u32> {
        Ok(match ty {
            TypeInner::Array { size, stride, .. } => {
                let n = self.array_length(*size)?.unwrap_or(1);
                n.checked_mul(*stride).ok_or_else(|| {
                    err!(TooLarge, "{}: an array of {n} times {stride} bytes", self.code.label)
                })?
            }
            other => other.size(self.module.to_ctx()),
        })
    }

    fn global_variables(&mut self, info: &FunctionInfo) -> Result<()> {
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
                    self.globals.insert(handle, Place { memory: None, offset: at, at: NONE, tracked: true });
                    continue;
                }
                AddressSpace::WorkGroup => {
                    let bytes = self.byte_size(ty)?;
                    let base = self.code.workgroup_bytes.next_multiple_of(16);
                    if bytes > MOST_WORKGROUP_BYTES - base {
                        return Err(err!(
                            TooLarge,
                            "{}: {bytes} bytes of workgroup memory in `{name}`; the simulator has \
                             {MOST_WORKGROUP_BYTES} in all, and devices less",
                            self.code.label
                        ));
                    }
                    self.code.workgroup_bytes = base + bytes;
                    self.code.workgroup_granule = self.code.workgroup_granule.min(self.granule(ty));
                    Memory::Workgroup { name, base, bytes }
                }
                AddressSpace::Uniform | AddressSpace::Storage { .. } => {
                    let Some(binding) = var.binding else {
                        return Err(self.unsupported("buffer without @group and @binding", span));
                    };
                    let writable = matches!(var.space, AddressSpace::Storage { access } if access.contains(StorageAccess::STORE));
                    Memory::Binding {
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
                AddressSpace::Immediate => Memory::Immediates { bytes: self.byte_size(ty)? },
                _ => return Err(self.unsupported("textures and samplers", span)),
            };
            let index = self.code.memories.len() as u16;
            self.code.memories.push(memory);
            self.globals.insert(handle, Place { memory: Some(index), offset: 0, at: NONE, tracked: false });
        }
        self.code.privates = (first, self.next - first);
        Ok(())
    }

    fn constant(&mut self, bits: u32) -> Slot {
        let next = self.constants.len() as u32;
        *self.constants.entry(bits).or_insert(next)
    }

    fn function(
        &mut self,
        function: &'a Function,
        info: &'a FunctionInfo,
        is_entry: bool,
    ) -> Result<Routine> {
        let mut body = Body {
            c: self,
            function,
            info,
            values: vec![None; function.expressions.len()],
            locals: HashMap::new(),
            next: 0,
            high: 0,
            line: 0,
            kind: Kind::None,
            depth: 0,
            targets: Vec::new(),
            result: Vec::new(),
            joins: Vec::new(),
        };
        if let Some((_, span)) = function.body.span_iter().find(|(_, span)| span.is_defined()) {
            body.at(*span);
        }
        body.next = body.c.next;
        body.high = body.next;
        let mut arguments = Vec::new();
        for argument in &function.arguments {
            let ty = body.c.inner(argument.ty);
            let slots = body.take(body.c.leaves(ty)?);
            if is_entry {
                let members = match ty {
                    TypeInner::Struct { members, .. } => {
                        members.iter().map(|m| (m.binding.clone(), body.c.inner(m.ty))).collect()
                    }
                    other => vec![(argument.binding.clone(), other)],
                };
                let mut at = 0;
                for (binding, ty) in members {
                    if let Some(Binding::BuiltIn(builtin)) = binding {
                        body.c.code.builtins.push((builtin, slots[at]));
                    }
                    at += body.c.leaves(ty)? as usize;
                }
            }
            arguments.push(slots);
        }
        if let Some(result) = &function.result {
            let n = body.c.leaves(body.c.inner(result.ty))?;
            body.result = body.take(n);
        }
        let begin = body.c.code.ops.len() as u32;
        let first = body.next;
        let mut initial = Vec::new();
        let mut written = Vec::new();
        for (handle, var) in function.local_variables.iter() {
            let n = body.c.leaves(body.c.inner(var.ty))?;
            let slots = body.take(n);
            body.c.check_size(body.next)?;
            let at = slots.first().copied().unwrap_or(body.next);
            let name = var.name.clone().unwrap_or_default();
            // What the language makes for itself it writes.
            let tracked = body.c.track_locals && !name.is_empty();
            if body.c.track_locals && !tracked {
                written.push(Op::Fresh { d: at, n, written: true });
            }
            body.c.code.names.push((at, n, name));
            body.locals.insert(handle, Place { memory: None, offset: at, at: NONE, tracked });
            if let Some(init) = var.init {
                initial.push((at, init));
            }
        }
        let n = body.next - first;
        if n > 0 {
            let written = !body.c.track_locals;
            body.push(Op::Fresh { d: first, n, written });
        }
        written.into_iter().for_each(|op| body.push(op));
        for (at, init) in initial {
            for (i, value) in body.slots(init)?.into_iter().enumerate() {
                body.push(Op::Assign { d: at + i as u32, a: value });
            }
        }
        body.arguments(&arguments);
        body.joins.push(Vec::new());
        body.block(&function.body)?;
        let end = body.c.code.ops.len() as u32;
        body.join(end);
        body.push(Op::EndFunction);
        let (result, high) = (std::mem::take(&mut body.result), body.high);
        self.next = high;
        self.check_size(high)?;
        Ok(Routine { begin, arguments, result })
    }
}

/// What `break` and `continue` leave.
struct Target {
    is_loop: bool,
    depth: u32,
}

/// The body of a function on its way to instructions.
struct Body<'a, 'b> {
    c: &'b mut Compiler<'a>,
    function: &'a Function,
    info: &'a FunctionInfo,
    values: Vec<Option<Value>>,
    locals: HashMap<Handle<naga::LocalVariable>, Place>,
    next: Slot,
    high: Slot,
    line: u32,
    kind: Kind,
    /// Frames of masks that are open.
    depth: u32,
    targets: Vec<Target>,
    result: Vec<Slot>,
    /// Instructions that go to the next joining point, for each open construct.
    joins: Vec<Vec<usize>>,
}

impl<'a> Body<'a, '_> {
    fn push(&mut self, op: Op) {
        self.c.code.ops.push(op);
        self.c.code.marks.push(Mark { line: self.line, kind: self.kind });
    }

    /// What comes next is of this line; what the language adds has none of its own, and belongs to the line before.
    fn at(&mut self, span: Span) {
        if span.is_defined() {
            self.line = self.c.line(span);
        }
    }

    fn counted(&mut self, kind: Kind, op: Op) {
        self.kind = kind;
        self.push(op);
        self.kind = Kind::None;
    }

    fn take(&mut self, n: u32) -> Vec<Slot> {
        let first = self.next;
        self.next = self.next.saturating_add(n);
        self.high = self.high.max(self.next);
        (first..self.next).collect()
    }

    fn one(&mut self) -> Slot {
        let slot = self.next;
        self.next += 1;
        self.high = self.high.max(self.next);
        slot
    }

    /// Those that wait for the next joining point go to `to`.
    fn join(&mut self, to: u32) {
        for at in self.joins.pop().unwrap_or_default() {
            match &mut self.c.code.ops[at] {
                Op::EndIf { skip }
                | Op::EndSwitch { skip }
                | Op::EndLoop { skip }
                | Op::Break { skip, .. }
                | Op::Continue { skip, .. }
                | Op::Return { skip, .. } => *skip = to,
                _ => {}
            }
        }
    }

    /// An instruction that goes to the next joining point where no lane is left.
    fn push_joining(&mut self, op: Op) {
        let at = self.c.code.ops.len();
        self.push(op);
        if let Some(joins) = self.joins.last_mut() {
            joins.push(at);
        }
    }

    fn here(&self) -> u32 {
        self.c.code.ops.len() as u32
    }

    fn arguments(&mut self, arguments: &[Vec<Slot>]) {
        for (handle, expression) in self.function.expressions.iter() {
            if let Expression::FunctionArgument(i) = expression {
                let slots = arguments[*i as usize].clone();
                let ty = self.c.inner(self.function.arguments[*i as usize].ty);
                let value = match ty {
                    TypeInner::Pointer { .. } | TypeInner::ValuePointer { .. } => {
                        // It may point to a private variable.
                        Value::Place(Place { memory: None, offset: 0, at: slots[0], tracked: true })
                    }
                    _ => Value::Slots(slots),
                };
                self.values[handle.index()] = Some(value);
            }
        }
    }

    fn ty(&self, handle: Handle<Expression>) -> &'a TypeInner {
        let resolution: &'a TypeResolution = &self.info[handle].ty;
        resolution.inner_with(&self.c.module.types)
    }

    fn span(&self, handle: Handle<Expression>) -> Span {
        self.function.expressions.get_span(handle)
    }

    /// What a pointer points to.
    fn pointee(&self, pointer: Handle<Expression>) -> Result<TypeInner> {
        match self.ty(pointer) {
            TypeInner::Pointer { base, .. } => Ok(self.c.inner(*base).clone()),
            TypeInner::ValuePointer { size: Some(size), scalar, .. } => {
                Ok(TypeInner::Vector { size: *size, scalar: *scalar })
            }
            TypeInner::ValuePointer { size: None, scalar, .. } => Ok(TypeInner::Scalar(*scalar)),
            _ => Err(self.c.unsupported("such pointer", self.span(pointer))),
        }
    }

    fn scalar_of(&self, handle: Handle<Expression>) -> Result<Scalar> {
        match self.ty(handle) {
            TypeInner::Scalar(s)
            | TypeInner::Vector { scalar: s, .. }
            | TypeInner::Matrix { scalar: s, .. }
            | TypeInner::CooperativeMatrix { scalar: s, .. } => Ok(*s),
            _ => Err(self.c.unsupported("arithmetic on such operands", self.span(handle))),
        }
    }

    fn value(&mut self, handle: Handle<Expression>) -> Result<Value> {
        if let Some(value) = &self.values[handle.index()] {
            return Ok(value.clone());
        }
        let value = match &self.function.expressions[handle] {
            Expression::Literal(literal) => {
                let bits = self.c.literal(*literal)?;
                Value::Slots(vec![self.c.constant(bits)])
            }
            Expression::Constant(constant) => {
                let bits = self.c.constant_bits(self.c.module.constants[*constant].init)?;
                Value::Slots(self.constants(&bits))
            }
            Expression::Override(handle) => {
                let init = self.c.module.overrides[*handle].init;
                let bits = match init {
                    Some(init) => self.c.constant_bits(init)?,
                    None => return Err(self.c.unsupported("override without a value", Span::UNDEFINED)),
                };
                Value::Slots(self.constants(&bits))
            }
            Expression::ZeroValue(ty) => {
                let n = self.c.leaves(self.c.inner(*ty))?;
                let zero = self.c.constant(0);
                Value::Slots(vec![zero; n as usize])
            }
            Expression::GlobalVariable(handle) => Value::Place(self.c.globals[handle]),
            Expression::LocalVariable(handle) => Value::Place(self.locals[handle]),
            // Constant expressions are not emitted.
            _ => self.evaluate(handle)?,
        };
        self.values[handle.index()] = Some(value.clone());
        Ok(value)
    }

    fn constants(&mut self, bits: &[u32]) -> Vec<Slot> {
        bits.iter().map(|b| self.c.constant(*b)).collect()
    }

    fn slots(&mut self, handle: Handle<Expression>) -> Result<Vec<Slot>> {
        match self.value(handle)? {
            Value::Slots(slots) => Ok(slots),
            // A pointer that is passed on: the register that it names.
            Value::Place(place) => Ok(vec![self.pointer_register(place, handle)?]),
        }
    }

    fn pointer_register(&mut self, place: Place, handle: Handle<Expression>) -> Result<Slot> {
        if place.memory.is_some() {
            return Err(self.c.unsupported("pointer to shared memory as an argument", self.span(handle)));
        }
        if place.at == NONE {
            return Ok(self.c.constant(place.offset));
        }
        let (d, by) = (self.one(), self.c.constant(place.offset));
        self.push(Op::Row2 { f: scalar::ADD_INTEGER, d, a: place.at, b: by });
        Ok(d)
    }

    fn slot(&mut self, handle: Handle<Expression>) -> Result<Slot> {
        Ok(self.slots(handle)?[0])
    }

    fn place(&mut self, handle: Handle<Expression>) -> Result<Place> {
        match self.value(handle)? {
            Value::Place(place) => Ok(place),
            Value::Slots(_) => Err(self.c.unsupported("such pointer", self.span(handle))),
        }
    }

    fn row1(&mut self, kind: Kind, f: Row1, a: Slot) -> Slot {
        let d = self.one();
        self.counted(kind, Op::Row1 { f, d, a });
        d
    }

    fn row2(&mut self, kind: Kind, f: Row2, a: Slot, b: Slot) -> Slot {
        let d = self.one();
        self.counted(kind, Op::Row2 { f, d, a, b });
        d
    }

    fn row3(&mut self, kind: Kind, f: Row3, a: Slot, b: Slot, c: Slot) -> Slot {
        let d = self.one();
        self.counted(kind, Op::Row3 { f, d, a, b, c });
        d
    }

    /// Rounds where the type is f16.
    fn rounded(&mut self, scalar: Scalar, d: Slot) -> Slot {
        if is_half(scalar) {
            self.push(Op::Row1 { f: scalar::ROUND_F16, d, a: d });
        }
        d
    }

    fn sum_of_products(&mut self, scalar: Scalar, a: &[Slot], b: &[Slot]) -> Slot {
        let float = scalar.kind == ScalarKind::Float;
        let (times, plus, kinds) = if float {
            (scalar::MULTIPLY, scalar::ADD, (Kind::Multiply, Kind::Add))
        } else {
            (scalar::MULTIPLY_INTEGER, scalar::ADD_INTEGER, (Kind::Integer, Kind::Integer))
        };
        let mut sum = NONE;
        for (x, y) in a.iter().zip(b) {
            let product = self.row2(kinds.0, times, *x, *y);
            let product = self.rounded(scalar, product);
            sum = if sum == NONE {
                product
            } else {
                let next = self.row2(kinds.1, plus, sum, product);
                self.rounded(scalar, next)
            };
        }
        sum
    }

    fn evaluate(&mut self, handle: Handle<Expression>) -> Result<Value> {
        let function = self.function;
        let slots = match &function.expressions[handle] {
            Expression::Compose { components, .. } => {
                let mut all = Vec::new();
                for component in components {
                    all.extend(self.slots(*component)?);
                }
                all
            }
            Expression::Splat { size, value } => vec![self.slot(*value)?; *size as usize],
            Expression::Swizzle { size, vector, pattern } => {
                let vector = self.slots(*vector)?;
                pattern[..*size as usize].iter().map(|c| vector[*c as usize]).collect()
            }
            Expression::AccessIndex { base, index } => return self.access_index(*base, *index),
            Expression::Access { base, index } => return self.access(*base, *index),
            Expression::Load { pointer } => self.load(*pointer, false)?,
            Expression::Unary { op, expr } => self.unary(*op, *expr)?,
            Expression::Binary { op, left, right } => self.binary(*op, *left, *right, handle)?,
            Expression::Select { condition, accept, reject } => {
                let condition = self.slots(*condition)?;
                let (accept, reject) = (self.slots(*accept)?, self.slots(*reject)?);
                let pairs = accept.into_iter().zip(reject).enumerate();
                pairs
                    .map(|(i, (a, b))| {
                        let c = condition[if condition.len() == 1 { 0 } else { i }];
                        self.row3(Kind::Integer, scalar::SELECT, c, a, b)
                    })
                    .collect()
            }
            Expression::Relational { fun, argument } => {
                let all = self.slots(*argument)?;
                use naga::RelationalFunction as R;
                match fun {
                    R::All | R::Any => {
                        let f = if *fun == R::All { scalar::AND } else { scalar::OR };
                        let mut sum = all[0];
                        for x in &all[1..] {
                            sum = self.row2(Kind::Integer, f, sum, *x);
                        }
                        vec![sum]
                    }
                    R::IsNan => all.iter().map(|x| self.row1(Kind::Integer, scalar::IS_NAN, *x)).collect(),
                    R::IsInf => all.iter().map(|x| self.row1(Kind::Integer, scalar::IS_INF, *x)).collect(),
                }
            }
            Expression::Math { fun, arg, arg1, arg2, arg3 } => {
                let more = [*arg1, *arg2, *arg3];
                self.math(*fun, *arg, more, handle)?
            }
            Expression::As { expr, kind, convert } => self.cast(*expr, *kind, *convert, handle)?,
            Expression::ArrayLength(pointer) => {
                let place = self.place(*pointer)?;
                let TypeInner::Array { stride, .. } = self.pointee(*pointer)? else {
                    return Err(self.c.unsupported("length of that", self.span(handle)));
                };
                let d = self.one();
                let memory = place.memory.unwrap_or(0);
                let length = Length::Bound { memory, offset: place.offset, stride };
                self.push(Op::ArrayLength { d, length });
                vec![d]
            }
            Expression::CooperativeLoad { columns, rows, data, .. } => {
                let (tile, from) = self.tile(data, *columns as u32, *rows as u32)?;
                let stride = self.slot(data.stride)?;
                let n = self.c.leaves(self.ty(handle))?;
                let d = self.take(n);
                self.push(Op::LoadTile { d: d[0], from, stride, tile });
                d
            }
            Expression::CooperativeMultiplyAdd { a, b, c } => self.multiply_tiles(*a, *b, *c, handle)?,
            other => {
                let name = format!("{other:?}");
                let name = name.split([' ', '(']).next().unwrap_or("");
                return Err(self.c.unsupported(&format!("expression {name}"), self.span(handle)));
            }
        };
        Ok(Value::Slots(slots))
    }

    /// Elements of a type that can be indexed, seen from a pointer: stride in memory, registers of each, length.
    fn elements(&self, ty: &TypeInner) -> Result<(u32, u32, Option<u32>)> {
        Ok(match ty {
            TypeInner::Array { base, size, stride } => {
                (*stride, self.c.leaves(self.c.inner(*base))?, self.c.array_length(*size)?)
            }
            TypeInner::Vector { size, scalar } => (u32::from(scalar.width), 1, Some(*size as u32)),
            TypeInner::Matrix { columns, rows, scalar } => {
                (Compiler::column_stride(*rows, *scalar), *rows as u32, Some(*columns as u32))
            }
            _ => return Err(self.c.unsupported("index into that", Span::UNDEFINED)),
        })
    }

    fn access_index(&mut self, base: Handle<Expression>, index: u32) -> Result<Value> {
        match self.value(base)? {
            Value::Slots(slots) => {
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
                Ok(Value::Slots(slots[first as usize..(first + n) as usize].to_vec()))
            }
            Value::Place(place) => {
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
                    return Ok(Value::Place(Place { offset: place.offset + by, ..place }));
                }
                let (stride, registers, length) = self.elements(&ty)?;
                if length.is_none() {
                    let index = self.c.constant(index);
                    return self.index(place, index, stride, length);
                }
                let by = index * if in_registers { registers } else { stride };
                Ok(Value::Place(Place { offset: place.offset + by, ..place }))
            }
        }
    }

    fn index(&mut self, place: Place, index: Slot, stride: u32, length: Option<u32>) -> Result<Value> {
        let length = match (length, place.memory) {
            (Some(n), _) => Length::Fixed(n),
            (None, Some(memory)) => Length::Bound { memory, offset: place.offset, stride },
            (None, None) => Length::Fixed(INVALID),
        };
        let d = self.one();
        self.push(Op::Index { d, base: place.at, index, stride, length });
        Ok(Value::Place(Place { at: d, ..place }))
    }

    fn access(&mut self, base: Handle<Expression>, index: Handle<Expression>) -> Result<Value> {
        let index = self.slot(index)?;
        match self.value(base)? {
            Value::Place(place) => {
                let ty = self.pointee(base)?;
                let (stride, registers, length) = self.elements(&ty)?;
                let stride = if place.memory.is_some() { stride } else { registers };
                self.index(place, index, stride, length)
            }
            Value::Slots(slots) => {
                let (_, n, _) = self.elements(self.ty(base))?;
                let n = n as usize;
                let length = (slots.len() / n) as u32;
                let picked = (0..n).map(|component| {
                    let table = self.c.code.tables.len() as u32;
                    self.c.code.tables.extend(slots.iter().skip(component).step_by(n));
                    let d = self.one();
                    self.push(Op::Pick { d, index, table, n: length });
                    d
                });
                Ok(Value::Slots(picked.collect()))
            }
        }
    }

    fn load(&mut self, pointer: Handle<Expression>, uniform: bool) -> Result<Vec<Slot>> {
        let (place, ty) = (self.place(pointer)?, self.pointee(pointer)?);
        let n = self.c.leaves(&ty)?;
        let d = self.take(n);
        let Some(memory) = place.memory else {
            if place.at == NONE {
                if place.tracked {
                    self.push(Op::CheckWritten { d: place.offset, n });
                }
                for (i, d) in d.iter().enumerate() {
                    self.push(Op::Row1 { f: scalar::COPY, d: *d, a: place.offset + i as u32 });
                }
            } else {
                for (i, d) in d.iter().enumerate() {
                    let offset = place.offset + i as u32;
                    self.push(Op::LoadVar { d: *d, at: place.at, offset, tracked: place.tracked });
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
            self.push(Op::Load { d: d[at], n: piece.n, from, width: piece.width, atomic, uniform });
            at += piece.n as usize;
        }
        Ok(d)
    }

    fn store(&mut self, pointer: Handle<Expression>, value: Handle<Expression>) -> Result<()> {
        let (place, ty) = (self.place(pointer)?, self.pointee(pointer)?);
        let values = self.slots(value)?;
        let Some(memory) = place.memory else {
            // The lanes hold such a matrix together, active or not.
            let whole = matches!(ty, TypeInner::CooperativeMatrix { .. });
            for (i, a) in values.into_iter().enumerate() {
                let d = place.offset + i as u32;
                match (whole, place.at) {
                    (true, NONE) => self.push(Op::Row1 { f: scalar::COPY, d, a }),
                    (false, NONE) => self.push(Op::Assign { d, a }),
                    (_, at) => self.push(Op::StoreVar { at, offset: d, a }),
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
            self.push(Op::Store { a, n: piece.n, to, width: piece.width, atomic });
        }
        Ok(())
    }

    fn unary(&mut self, op: UnaryOperator, expr: Handle<Expression>) -> Result<Vec<Slot>> {
        let all = self.slots(expr)?;
        let float = self.scalar_of(expr)?.kind == ScalarKind::Float;
        let f = match op {
            UnaryOperator::Negate if float => scalar::NEGATE_FLOAT,
            UnaryOperator::Negate => scalar::NEGATE_INTEGER,
            UnaryOperator::LogicalNot => scalar::NOT,
            UnaryOperator::BitwiseNot => scalar::BIT_NOT,
        };
        let kind = if float { Kind::None } else { Kind::Integer };
        Ok(all.into_iter().map(|x| self.row1(kind, f, x)).collect())
    }

    fn binary(
        &mut self,
        op: naga::BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
        whole: Handle<Expression>,
    ) -> Result<Vec<Slot>> {
        let (a, b) = (self.slots(left)?, self.slots(right)?);
        let scalar = self.scalar_of(left)?;
        if op == naga::BinaryOperator::Multiply
            && let Some(product) = self.matrix_product(left, right, &a, &b)?
        {
            return Ok(product);
        }
        let Some((f, kind, guard)) = scalar::binary(op, scalar.kind) else {
            return Err(self.c.unsupported("such operator", self.span(whole)));
        };
        let result = self.scalar_of(whole)?;
        let n = a.len().max(b.len());
        let mut all = Vec::with_capacity(n);
        for i in 0..n {
            let (a, b) = (a[if a.len() == 1 { 0 } else { i }], b[if b.len() == 1 { 0 } else { i }]);
            let d = self.one();
            match guard {
                Some(guard) => self.counted(kind, Op::Guarded { f, guard, d, a, b }),
                None => self.counted(kind, Op::Row2 { f, d, a, b }),
            }
            all.push(self.rounded(result, d));
        }
        Ok(all)
    }

    fn matrix_product(
        &mut self,
        left: Handle<Expression>,
        right: Handle<Expression>,
        a: &[Slot],
        b: &[Slot],
    ) -> Result<Option<Vec<Slot>>> {
        use TypeInner::{Matrix, Vector};
        let scalar = self.scalar_of(left)?;
        let (rows, inner, columns) = match (self.ty(left), self.ty(right)) {
            (Matrix { columns, rows, .. }, Matrix { columns: n, .. }) => {
                (*rows, *columns as usize, *n as usize)
            }
            (Matrix { columns, rows, .. }, Vector { .. }) => (*rows, *columns as usize, 1),
            (Vector { size, .. }, Matrix { columns, .. }) => {
                let product = (0..*columns as usize).map(|column| {
                    let n = *size as usize;
                    self.sum_of_products(scalar, a, &b[column * n..(column + 1) * n])
                });
                return Ok(Some(product.collect()));
            }
            _ => return Ok(None),
        };
        let rows = rows as usize;
        let mut product = Vec::new();
        for column in 0..columns {
            for row in 0..rows {
                let of_row: Vec<_> = (0..inner).map(|k| a[k * rows + row]).collect();
                product.push(self.sum_of_products(scalar, &of_row, &b[column * inner..(column + 1) * inner]));
            }
        }
        Ok(Some(product))
    }

    fn cast(
        &mut self,
        expr: Handle<Expression>,
        kind: ScalarKind,
        convert: Option<u8>,
        whole: Handle<Expression>,
    ) -> Result<Vec<Slot>> {
        let all = self.slots(expr)?;
        let from = self.scalar_of(expr)?;
        let to = self.scalar_of(whole)?;
        self.c.check_scalar(to)?;
        if convert.is_some() {
            if from.kind == kind && from.width == to.width {
                return Ok(all);
            }
            let f = scalar::convert(from.kind, kind);
            let converted = all.into_iter().map(|x| {
                let d = self.row1(Kind::Integer, f, x);
                self.rounded(to, d)
            });
            return Ok(converted.collect());
        }
        // The same bits, seen as another type.
        match (is_half(from), is_half(to)) {
            (false, false) => Ok(all),
            (true, true) => Ok(all),
            (true, false) => {
                let pairs = all.chunks(2).map(|pair| {
                    let high = pair.get(1).copied();
                    let high = high.unwrap_or_else(|| self.c.constant(0));
                    self.row2(Kind::Integer, scalar::JOIN_HALVES, pair[0], high)
                });
                Ok(pairs.collect())
            }
            (false, true) => Ok(all
                .into_iter()
                .flat_map(|x| {
                    let low = self.row1(Kind::Integer, scalar::LOW_HALF, x);
                    [low, self.row1(Kind::Integer, scalar::HIGH_HALF, x)]
                })
                .collect()),
        }
    }

    fn math(
        &mut self,
        fun: MathFunction,
        arg: Handle<Expression>,
        more: [Option<Handle<Expression>>; 3],
        whole: Handle<Expression>,
    ) -> Result<Vec<Slot>> {
        use MathFunction as M;
        let a = self.slots(arg)?;
        let scalar = self.scalar_of(arg)?;
        let mut rest = Vec::new();
        for handle in more.into_iter().flatten() {
            rest.push(self.slots(handle)?);
        }
        let n = a.len();
        let at = |list: &[Slot], i: usize| list[if list.len() == 1 { 0 } else { i }];
        if let Some((f, kind)) = scalar::unary(fun, scalar.kind).filter(|_| rest.is_empty()) {
            let each = a.into_iter().map(|x| {
                let d = self.row1(kind, f, x);
                self.rounded(scalar, d)
            });
            return Ok(each.collect());
        }
        if let Some((f, kind)) = scalar::binary_math(fun, scalar.kind) {
            let each = (0..n.max(rest[0].len())).map(|i| {
                let d = self.row2(kind, f, at(&a, i), at(&rest[0], i));
                self.rounded(scalar, d)
            });
            return Ok(each.collect());
        }
        if let Some((f, kind)) = scalar::ternary_math(fun, scalar.kind) {
            let each = (0..n).map(|i| {
                let d = self.row3(kind, f, at(&a, i), at(&rest[0], i), at(&rest[1], i));
                self.rounded(scalar, d)
            });
            return Ok(each.collect());
        }
        if let Some(f) = scalar::dot_packed(fun) {
            return Ok(vec![self.row2(Kind::Integer, f, a[0], rest[0][0])]);
        }
        if scalar::unpack(fun, 0).is_some() {
            let components = self.c.leaves(self.ty(whole))? as usize;
            let each = (0..components).filter_map(|c| scalar::unpack(fun, c));
            return Ok(each
                .collect::<Vec<_>>()
                .into_iter()
                .map(|f| self.row1(Kind::Integer, f, a[0]))
                .collect());
        }
        if let Some((f, bits)) = scalar::pack(fun) {
            let mut word = NONE;
            for (i, x) in a.iter().enumerate() {
                let mut part = self.row1(Kind::Integer, f, *x);
                if i > 0 {
                    let by = self.c.constant(bits * i as u32);
                    part = self.row2(Kind::Integer, scalar::SHIFT_WIDE, part, by);
                }
                word = if word == NONE { part } else { self.row2(Kind::Integer, scalar::OR, word, part) };
            }
            return Ok(vec![word]);
        }
        match fun {
            M::Dot => Ok(vec![self.sum_of_products(scalar, &a, &rest[0])]),
            M::Length => Ok(vec![self.length(scalar, &a)]),
            M::Distance => {
                let between = self.each2(Kind::Add, scalar::SUBTRACT, scalar, &a, &rest[0]);
                Ok(vec![self.length(scalar, &between)])
            }
            M::Normalize => {
                let length = self.length(scalar, &a);
                Ok(self.each2(Kind::Divide, scalar::DIVIDE, scalar, &a, &[length]))
            }
            M::Cross => {
                let b = &rest[0];
                let each = [(1, 2), (2, 0), (0, 1)].map(|(i, j)| {
                    let x = self.row2(Kind::Multiply, scalar::MULTIPLY, a[i], b[j]);
                    let x = self.rounded(scalar, x);
                    let y = self.row2(Kind::Multiply, scalar::MULTIPLY, a[j], b[i]);
                    let y = self.rounded(scalar, y);
                    let d = self.row2(Kind::Add, scalar::SUBTRACT, x, y);
                    self.rounded(scalar, d)
                });
                Ok(each.to_vec())
            }
            M::Transpose => {
                let TypeInner::Matrix { columns, rows, .. } = self.ty(arg) else { return Ok(a) };
                let (columns, rows) = (*columns as usize, *rows as usize);
                Ok((0..rows).flat_map(|r| (0..columns).map(move |c| c * rows + r)).map(|i| a[i]).collect())
            }
            M::ExtractBits => {
                let f = if scalar.kind == ScalarKind::Sint {
                    scalar::EXTRACT_SIGNED
                } else {
                    scalar::EXTRACT_UNSIGNED
                };
                Ok(a.iter().map(|x| self.row3(Kind::Integer, f, *x, rest[0][0], rest[1][0])).collect())
            }
            M::InsertBits => {
                let (offset, count) = (rest[1][0], rest[2][0]);
                let mask = self.row2(Kind::Integer, scalar::INSERT_MASK, offset, count);
                let each = (0..n).map(|i| {
                    let new = self.row2(Kind::Integer, scalar::SHIFT_WIDE, rest[0][i], offset);
                    self.row3(Kind::Integer, scalar::INSERT, a[i], new, mask)
                });
                Ok(each.collect())
            }
            M::Modf | M::Frexp => {
                let (first, second) = if fun == M::Modf {
                    (scalar::PART, scalar::WHOLE)
                } else {
                    (scalar::FRACTION, scalar::EXPONENT)
                };
                let mut all: Vec<_> = a.iter().map(|x| self.row1(Kind::Add, first, *x)).collect();
                all.extend(a.iter().map(|x| self.row1(Kind::Add, second, *x)).collect::<Vec<_>>());
                Ok(all)
            }
            other => Err(self.c.unsupported(&format!("function {other:?}"), self.span(whole))),
        }
    }

    fn each2(&mut self, kind: Kind, f: Row2, scalar: Scalar, a: &[Slot], b: &[Slot]) -> Vec<Slot> {
        let each = a.iter().enumerate().map(|(i, x)| {
            let d = self.row2(kind, f, *x, b[if b.len() == 1 { 0 } else { i }]);
            self.rounded(scalar, d)
        });
        each.collect()
    }

    fn length(&mut self, scalar: Scalar, a: &[Slot]) -> Slot {
        let square = self.sum_of_products(scalar, a, a);
        let d = self.row1(Kind::Special, scalar::SQRT, square);
        self.rounded(scalar, d)
    }

    fn tile(&mut self, data: &naga::CooperativeData, columns: u32, rows: u32) -> Result<(Tile, Address)> {
        let place = self.place(data.pointer)?;
        // A pointer to a scalar or vector, or to an array of them.
        let mut ty = self.pointee(data.pointer)?;
        while let TypeInner::Array { base, .. } = ty {
            ty = self.c.inner(base).clone();
        }
        let (scalar, vector) = match ty {
            TypeInner::Scalar(scalar) => (scalar, 1),
            TypeInner::Vector { size, scalar } => (scalar, size as u32),
            _ => return Err(self.c.unsupported("such cooperative matrix", self.span(data.pointer))),
        };
        let Some(memory) = place.memory else {
            return Err(self.c.unsupported("cooperative matrix in private memory", self.span(data.pointer)));
        };
        let width = self.c.check_scalar(scalar)?;
        let tile = Tile { rows, columns, width, row_major: data.row_major, vector };
        Ok((tile, Address { memory, at: place.at, offset: place.offset }))
    }

    fn multiply_tiles(
        &mut self,
        a: Handle<Expression>,
        b: Handle<Expression>,
        c: Handle<Expression>,
        whole: Handle<Expression>,
    ) -> Result<Vec<Slot>> {
        let TypeInner::CooperativeMatrix { columns: inner, rows, .. } = self.ty(a) else {
            return Err(self.c.unsupported("such product", self.span(whole)));
        };
        let TypeInner::CooperativeMatrix { columns, scalar, .. } = self.ty(c) else {
            return Err(self.c.unsupported("such product", self.span(whole)));
        };
        let (inner, rows, columns, half) = (*inner as u32, *rows as u32, *columns as u32, is_half(*scalar));
        let [a, b, c] = [a, b, c].map(|m| self.slots(m));
        let (a, b, c) = (self.side_by_side(a?), self.side_by_side(b?), self.side_by_side(c?));
        let n = self.c.leaves(self.ty(whole))?;
        let d = self.take(n);
        self.counted(Kind::Fma, Op::MultiplyTiles { d: d[0], a, b, c, rows, columns, inner, half });
        Ok(d)
    }

    /// The same values in registers that follow each other.
    fn side_by_side(&mut self, slots: Vec<Slot>) -> Slot {
        if slots.windows(2).all(|pair| pair[1] == pair[0] + 1) {
            return slots[0];
        }
        let copies = self.take(slots.len() as u32);
        for (d, a) in copies.iter().zip(slots) {
            self.push(Op::Row1 { f: scalar::COPY, d: *d, a });
        }
        copies[0]
    }

    fn block(&mut self, block: &'a Block) -> Result<()> {
        let first = self.next;
        self.statements(block)?;
        self.next = first;
        Ok(())
    }

    fn statements(&mut self, block: &'a Block) -> Result<()> {
        let all: Vec<_> = block.span_iter().collect();
        for (i, (statement, span)) in all.iter().enumerate() {
            if let Statement::Emit(range) = statement {
                let user = all[i + 1..].iter().find_map(|(next, span)| match next {
                    Statement::Emit(range) => self.place_of(&range.clone().collect::<Vec<_>>()),
                    _ => Some(**span),
                });
                self.emit(range, user.unwrap_or(**span))?;
            } else {
                self.at(**span);
                self.statement(statement, **span)?;
            }
            self.c.check_size(self.next)?;
        }
        Ok(())
    }

    /// Where the first of these stands. naga has a read of a variable where that is declared: it counts where it is used.
    fn place_of(&self, expressions: &[Handle<Expression>]) -> Option<Span> {
        let placed = expressions.iter().find(|&&handle| !self.is_read_of_variable(handle));
        placed.map(|handle| self.span(*handle))
    }

    /// Evaluates expressions, the last of which what stands at `user` may want.
    fn emit(&mut self, range: &naga::Range<Expression>, user: Span) -> Result<()> {
        let all: Vec<_> = range.clone().collect();
        for (i, &handle) in all.iter().enumerate() {
            self.at(self.place_of(&all[i..]).unwrap_or(user));
            let value = self.evaluate(handle)?;
            self.values[handle.index()] = Some(value);
            self.c.check_size(self.next)?;
        }
        Ok(())
    }

    fn is_read_of_variable(&self, handle: Handle<Expression>) -> bool {
        let Expression::Load { pointer } = self.function.expressions[handle] else { return false };
        let variable = &self.function.expressions[pointer];
        matches!(variable, Expression::LocalVariable(_) | Expression::FunctionArgument(_))
    }

    fn set(&mut self, handle: Handle<Expression>, slots: Vec<Slot>) {
        self.values[handle.index()] = Some(Value::Slots(slots));
    }

    fn statement(&mut self, statement: &'a Statement, span: Span) -> Result<()> {
        match statement {
            Statement::Emit(range) => self.emit(range, span)?,
            Statement::Block(inner) => self.block(inner)?,
            Statement::If { condition, accept, reject } => {
                let condition = self.slot(*condition)?;
                let begin = self.c.code.ops.len();
                self.push(Op::If { condition, or_else: 0 });
                self.depth += 1;
                self.joins.push(Vec::new());
                self.block(accept)?;
                let middle = self.here();
                self.at(span);
                self.join(middle);
                self.push(Op::Else { end: 0 });
                self.joins.push(Vec::new());
                self.block(reject)?;
                let end = self.here();
                self.at(span);
                self.join(end);
                self.depth -= 1;
                self.c.code.ops[begin] = Op::If { condition, or_else: middle };
                self.c.code.ops[middle as usize] = Op::Else { end };
                self.push_joining(Op::EndIf { skip: 0 });
            }
            Statement::Switch { selector, cases } => self.switch(*selector, cases)?,
            Statement::Loop { body, continuing, break_if } => {
                self.push(Op::Loop);
                self.depth += 1;
                self.targets.push(Target { is_loop: true, depth: self.depth });
                let (begin, first) = (self.here(), self.next);
                self.joins.push(Vec::new());
                self.statements(body)?;
                let next = self.here();
                self.join(next);
                self.at(span);
                self.push(Op::Continuing { end: 0 });
                self.joins.push(Vec::new());
                self.statements(continuing)?;
                if let Some(condition) = break_if {
                    let condition = self.slot(*condition)?;
                    self.push(Op::BreakIf { condition });
                }
                let back = self.here();
                self.join(back);
                self.at(span);
                self.push(Op::Repeat { begin });
                let end = self.here();
                self.c.code.ops[next as usize] = Op::Continuing { end };
                self.next = first;
                self.targets.pop();
                self.depth -= 1;
                self.push_joining(Op::EndLoop { skip: 0 });
            }
            Statement::Break => {
                let depth = self.targets.last().map_or(0, |t| self.depth - t.depth);
                self.push_joining(Op::Break { depth, skip: 0 });
            }
            Statement::Continue => {
                let depth = self.targets.iter().rev().find(|t| t.is_loop).map_or(0, |t| self.depth - t.depth);
                self.push_joining(Op::Continue { depth, skip: 0 });
            }
            Statement::Return { value } => {
                if let Some(value) = value {
                    let values = self.slots(*value)?;
                    for (d, a) in self.result.clone().into_iter().zip(values) {
                        self.push(Op::Assign { d, a });
                    }
                }
                let depth = self.depth;
                self.push_joining(Op::Return { depth, skip: 0 });
            }
            Statement::ControlBarrier(flags) => self.push(Op::Barrier(*flags)),
            Statement::Store { pointer, value } => self.store(*pointer, *value)?,
            Statement::Atomic { pointer, fun, value, result } => {
                self.atomic(*pointer, fun, *value, *result)?;
            }
            Statement::WorkGroupUniformLoad { pointer, result } => {
                self.push(Op::Barrier(naga::Barrier::WORK_GROUP));
                let loaded = self.load(*pointer, true)?;
                self.push(Op::Barrier(naga::Barrier::WORK_GROUP));
                self.set(*result, loaded);
            }
            Statement::Call { function, arguments, result } => {
                let mut passed = Vec::new();
                for argument in arguments {
                    passed.push(self.slots(*argument)?);
                }
                let routine = &self.c.routines[function];
                let (begin, into, from) = (routine.begin, routine.arguments.concat(), routine.result.clone());
                for (d, a) in into.into_iter().zip(passed.into_iter().flatten()) {
                    self.push(Op::Row1 { f: scalar::COPY, d, a });
                }
                self.push(Op::Call { function: begin });
                if let Some(result) = result {
                    let copies = self.take(from.len() as u32);
                    for (d, a) in copies.iter().zip(from) {
                        self.push(Op::Row1 { f: scalar::COPY, d: *d, a });
                    }
                    self.set(*result, copies);
                }
            }
            Statement::SubgroupBallot { result, predicate } => {
                let a = match predicate {
                    Some(predicate) => self.slot(*predicate)?,
                    None => self.c.constant(1),
                };
                let d = self.take(4);
                self.push(Op::Ballot { d: d[0], a });
                self.set(*result, d);
            }
            Statement::SubgroupGather { mode, argument, result } => {
                use naga::GatherMode as G;
                let b = match mode {
                    G::Broadcast(i) | G::Shuffle(i) | G::ShuffleDown(i) | G::ShuffleUp(i) => self.slot(*i)?,
                    G::ShuffleXor(i) | G::QuadBroadcast(i) => self.slot(*i)?,
                    G::BroadcastFirst | G::QuadSwap(_) => NONE,
                };
                let all = self.slots(*argument)?;
                let gathered = all.into_iter().map(|a| {
                    let d = self.one();
                    self.push(Op::Gather { mode: Gather::of(mode), d, a, b });
                    d
                });
                let gathered = gathered.collect();
                self.set(*result, gathered);
            }
            Statement::SubgroupCollectiveOperation { op, collective_op, argument, result } => {
                let all = self.slots(*argument)?;
                let scalar = self.scalar_of(*argument)?;
                let (kind, half) = (scalar.kind, is_half(scalar));
                let counted = if kind == ScalarKind::Float { Kind::Add } else { Kind::Integer };
                let collected = all.into_iter().map(|a| {
                    let d = self.one();
                    self.counted(counted, Op::Collective { op: *op, scan: *collective_op, kind, half, d, a });
                    d
                });
                let collected = collected.collect();
                self.set(*result, collected);
            }
            Statement::CooperativeStore { target, data } => {
                let TypeInner::CooperativeMatrix { columns, rows, .. } = self.ty(*target) else {
                    return Err(self.c.unsupported("such cooperative matrix", span));
                };
                let (tile, to) = self.tile(data, *columns as u32, *rows as u32)?;
                let (values, stride) = (self.slots(*target)?, self.slot(data.stride)?);
                let a = self.side_by_side(values);
                self.push(Op::StoreTile { a, to, stride, tile });
            }
            other => {
                let name = format!("{other:?}");
                let name = name.split([' ', '(']).next().unwrap_or("");
                return Err(self.c.unsupported(&format!("statement {name}"), span));
            }
        }
        Ok(())
    }

    fn switch(&mut self, selector: Handle<Expression>, cases: &'a [naga::SwitchCase]) -> Result<()> {
        let selector = self.slot(selector)?;
        self.push(Op::Switch);
        self.depth += 1;
        self.targets.push(Target { is_loop: false, depth: self.depth });
        let bits = |value: SwitchValue| match value {
            SwitchValue::I32(x) => Some(x as u32),
            SwitchValue::U32(x) => Some(x),
            SwitchValue::Default => None,
        };
        let all: Vec<u32> = cases.iter().filter_map(|c| bits(c.value)).collect();
        // Cases that fall through share the body of the first that does not.
        let mut shared = Vec::new();
        let mut default = false;
        for case in cases {
            default |= case.value == SwitchValue::Default;
            shared.extend(bits(case.value));
            if case.fall_through && case.body.is_empty() {
                continue;
            }
            // A default takes what no other case does.
            let list = if default {
                all.iter().copied().filter(|v| !shared.contains(v)).collect()
            } else {
                shared.clone()
            };
            let (table, n) = (self.c.code.tables.len() as u32, list.len() as u32);
            self.c.code.tables.extend(list);
            let at = self.c.code.ops.len();
            self.push(Op::Case { selector, table, n, default, next: 0 });
            self.joins.push(Vec::new());
            self.block(&case.body)?;
            let next = self.here();
            self.join(next);
            self.c.code.ops[at] = Op::Case { selector, table, n, default, next };
            shared.clear();
            default = false;
        }
        self.targets.pop();
        self.depth -= 1;
        self.push_joining(Op::EndSwitch { skip: 0 });
        Ok(())
    }

    fn atomic(
        &mut self,
        pointer: Handle<Expression>,
        fun: &AtomicFunction,
        value: Handle<Expression>,
        result: Option<Handle<Expression>>,
    ) -> Result<()> {
        let place = self.place(pointer)?;
        let Some(memory) = place.memory else {
            return Err(self.c.unsupported("atomic in private memory", self.span(pointer)));
        };
        let scalar = match self.pointee(pointer)? {
            TypeInner::Atomic(scalar) => scalar,
            _ => return Err(self.c.unsupported("atomic on that", self.span(pointer))),
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
        self.push(Op::Atomic { fun: *fun, signed, float, d: d[0], to, a, compare, exchanged });
        if let Some(result) = result {
            let slots = if compare == NONE { vec![d[0]] } else { d };
            self.set(result, slots);
        }
        Ok(())
    }
}
