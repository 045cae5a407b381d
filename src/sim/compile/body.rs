//! Compiles a function's body: registers and expressions.

mod arithmetic;
mod memory;
mod statement;
mod subgroup;

use super::{Compiler, Routine, VarPlace};
use crate::error::Result;
use crate::sim::code::{Instruction, Length, Mark, NONE, Slot};
use crate::sim::scalar::{self, Kind};
use arithmetic::component;
use naga::proc::TypeResolution;
use naga::valid::FunctionInfo;
use naga::{Binding, Expression, Function, Handle, Scalar, Span, TypeInner};
use std::collections::HashMap;
use std::fmt::Debug;

/// The compiled form of an expression.
#[derive(Debug, Clone)]
enum ExprValue {
    Slots(Vec<Slot>),
    Place(VarPlace),
}

struct JumpTarget {
    is_loop: bool,
    depth: u32,
}

/// A function's body during compilation.
struct Body<'a, 'b> {
    c: &'b mut Compiler<'a>,
    function: &'a Function,
    info: &'a FunctionInfo,
    values: Vec<Option<ExprValue>>,
    locals: HashMap<Handle<naga::LocalVariable>, VarPlace>,
    next: Slot,
    high: Slot,
    line: u32,
    kind: Kind,
    /// Number of open mask frames.
    depth: u32,
    targets: Vec<JumpTarget>,
    result: Vec<Slot>,
    /// For each open construct, the instructions that jump to its end.
    joins: Vec<Vec<usize>>,
}

impl<'a> Compiler<'a> {
    pub(super) fn function(
        &mut self, function: &'a Function, info: &'a FunctionInfo, is_entry: bool,
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
            // Variables without a name come from the compiler, which writes them before use.
            let tracked = body.c.track_locals && !name.is_empty();
            if body.c.track_locals && !tracked {
                written.push(Instruction::Fresh { d: at, n, written: true });
            }
            body.c.code.names.push((at, n, name));
            body.locals.insert(handle, VarPlace { memory: None, offset: at, at: NONE, tracked });
            if let Some(init) = var.init {
                initial.push((at, init));
            }
        }
        let n = body.next - first;
        if n > 0 {
            let written = !body.c.track_locals;
            body.push(Instruction::Fresh { d: first, n, written });
        }
        written.into_iter().for_each(|op| body.push(op));
        for (at, init) in initial {
            for (i, value) in body.slots(init)?.into_iter().enumerate() {
                body.push(Instruction::Assign { d: at + i as u32, a: value });
            }
        }
        body.arguments(&arguments);
        body.joins.push(Vec::new());
        body.block(&function.body)?;
        let end = body.c.code.ops.len() as u32;
        body.join(end);
        body.push(Instruction::EndFunction);
        let (result, high) = (std::mem::take(&mut body.result), body.high);
        self.next = high;
        self.check_size(high)?;
        Ok(Routine { begin, arguments, result })
    }
}

/// Names the kind of an expression or statement as naga does.
fn kind_name(of: &impl Debug) -> String {
    let text = format!("{of:?}");
    text.split([' ', '(']).next().unwrap_or("").to_owned()
}

impl<'a> Body<'a, '_> {
    fn push(&mut self, op: Instruction) {
        self.c.code.ops.push(op);
        self.c.code.marks.push(Mark { line: self.line, kind: self.kind });
    }

    /// Sets the line of the next instructions. Compiler-made code without a line belongs to the line before.
    fn at(&mut self, span: Span) {
        if span.is_defined() {
            self.line = self.c.line(span);
        }
    }

    fn counted(&mut self, kind: Kind, op: Instruction) {
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
                        // A pointer to a private variable, perhaps.
                        ExprValue::Place(VarPlace { memory: None, offset: 0, at: slots[0], tracked: true })
                    }
                    _ => ExprValue::Slots(slots),
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

    fn scalar_of(&self, handle: Handle<Expression>) -> Result<Scalar> {
        match self.ty(handle) {
            TypeInner::Scalar(s)
            | TypeInner::Vector { scalar: s, .. }
            | TypeInner::Matrix { scalar: s, .. }
            | TypeInner::CooperativeMatrix { scalar: s, .. } => Ok(*s),
            _ => Err(self.c.unsupported("arithmetic on these operands", self.span(handle))),
        }
    }

    fn value(&mut self, handle: Handle<Expression>) -> Result<ExprValue> {
        if let Some(value) = &self.values[handle.index()] {
            return Ok(value.clone());
        }
        let value = match &self.function.expressions[handle] {
            Expression::Literal(literal) => {
                let bits = self.c.literal(*literal)?;
                ExprValue::Slots(vec![self.c.constant(bits)])
            }
            Expression::Constant(constant) => {
                let bits = self.c.constant_bits(self.c.module.constants[*constant].init)?;
                ExprValue::Slots(self.constants(&bits))
            }
            Expression::Override(handle) => {
                let init = self.c.module.overrides[*handle].init;
                let bits = match init {
                    Some(init) => self.c.constant_bits(init)?,
                    None => return Err(self.c.unsupported("overrides without a value", Span::UNDEFINED)),
                };
                ExprValue::Slots(self.constants(&bits))
            }
            Expression::ZeroValue(ty) => {
                let n = self.c.leaves(self.c.inner(*ty))?;
                let zero = self.c.constant(0);
                ExprValue::Slots(vec![zero; n as usize])
            }
            Expression::GlobalVariable(handle) => ExprValue::Place(self.c.globals[handle]),
            Expression::LocalVariable(handle) => ExprValue::Place(self.locals[handle]),
            // naga does not emit constant expressions.
            _ => self.evaluate(handle)?,
        };
        self.values[handle.index()] = Some(value.clone());
        Ok(value)
    }

    fn constants(&mut self, bits: &[u32]) -> Vec<Slot> {
        bits.iter().map(|b| self.c.constant(*b)).collect()
    }

    /// Copies values to consecutive registers.
    fn copies(&mut self, of: &[Slot]) -> Vec<Slot> {
        let copies = self.take(of.len() as u32);
        self.copy_all(&copies, of);
        copies
    }

    fn copy_all(&mut self, to: &[Slot], from: &[Slot]) {
        for (d, a) in to.iter().zip(from) {
            self.push(Instruction::Row1 { f: scalar::COPY, d: *d, a: *a });
        }
    }

    fn slots(&mut self, handle: Handle<Expression>) -> Result<Vec<Slot>> {
        match self.value(handle)? {
            ExprValue::Slots(slots) => Ok(slots),
            // A pointer passed on: the register it names.
            ExprValue::Place(place) => Ok(vec![self.pointer_register(place, handle)?]),
        }
    }

    fn slot(&mut self, handle: Handle<Expression>) -> Result<Slot> {
        Ok(self.slots(handle)?[0])
    }

    fn evaluate(&mut self, handle: Handle<Expression>) -> Result<ExprValue> {
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
                    .map(|(i, (a, b))| self.row3(Kind::Integer, scalar::SELECT, component(&condition, i), a, b))
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
                    return Err(self.c.unsupported("arrayLength of this expression", self.span(handle)));
                };
                let d = self.one();
                let memory = place.memory.unwrap_or(0);
                let length = Length::Bound { memory, offset: place.offset, stride };
                self.push(Instruction::ArrayLength { d, length });
                vec![d]
            }
            Expression::CooperativeLoad { columns, rows, data, .. } => {
                self.load_tile(data, *columns as u32, *rows as u32, handle)?
            }
            Expression::CooperativeMultiplyAdd { a, b, c } => self.multiply_tiles(*a, *b, *c, handle)?,
            other => {
                let name = kind_name(other);
                return Err(self.c.unsupported(&format!("the expression {name}"), self.span(handle)));
            }
        };
        Ok(ExprValue::Slots(slots))
    }
}
