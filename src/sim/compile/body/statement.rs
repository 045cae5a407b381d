//! Compiles statements: control flow becomes masks of lanes and jumps for when no lane is left.

use super::{Body, ExprValue, JumpTarget, kind_name};
use crate::error::Result;
use crate::sim::code::{Instruction, Slot};
use naga::{Block, Expression, Handle, Span, Statement, SwitchValue};

impl<'a> Body<'a, '_> {
    pub(super) fn block(&mut self, block: &'a Block) -> Result<()> {
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

    /// Returns where the first of these expressions stands. naga places a read of a variable at its declaration; it
    /// counts where it is used.
    fn place_of(&self, expressions: &[Handle<Expression>]) -> Option<Span> {
        let placed = expressions.iter().find(|&&handle| !self.is_read_of_variable(handle));
        placed.map(|handle| self.span(*handle))
    }

    /// Compiles expressions; the last may belong to the statement at `user`.
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

    pub(super) fn set(&mut self, handle: Handle<Expression>, slots: Vec<Slot>) {
        self.values[handle.index()] = Some(ExprValue::Slots(slots));
    }

    fn statement(&mut self, statement: &'a Statement, span: Span) -> Result<()> {
        match statement {
            Statement::Emit(range) => self.emit(range, span)?,
            Statement::Block(inner) => self.block(inner)?,
            Statement::If { condition, accept, reject } => {
                let condition = self.slot(*condition)?;
                let begin = self.c.code.ops.len();
                self.push(Instruction::If { condition, or_else: 0 });
                self.depth += 1;
                self.joins.push(Vec::new());
                self.block(accept)?;
                let middle = self.here();
                self.at(span);
                self.join(middle);
                self.push(Instruction::Else { end: 0 });
                self.joins.push(Vec::new());
                self.block(reject)?;
                let end = self.here();
                self.at(span);
                self.join(end);
                self.depth -= 1;
                self.c.code.ops[begin] = Instruction::If { condition, or_else: middle };
                self.c.code.ops[middle as usize] = Instruction::Else { end };
                self.push_joining(Instruction::EndIf { skip: 0 });
            }
            Statement::Switch { selector, cases } => self.switch(*selector, cases)?,
            Statement::Loop { body, continuing, break_if } => {
                self.push(Instruction::Loop);
                self.depth += 1;
                self.targets.push(JumpTarget { is_loop: true, depth: self.depth });
                let (begin, first) = (self.here(), self.next);
                self.joins.push(Vec::new());
                self.statements(body)?;
                let next = self.here();
                self.join(next);
                self.at(span);
                self.push(Instruction::Continuing { end: 0 });
                self.joins.push(Vec::new());
                self.statements(continuing)?;
                if let Some(condition) = break_if {
                    let condition = self.slot(*condition)?;
                    self.push(Instruction::BreakIf { condition });
                }
                let back = self.here();
                self.join(back);
                self.at(span);
                self.push(Instruction::Repeat { begin });
                let end = self.here();
                self.c.code.ops[next as usize] = Instruction::Continuing { end };
                self.next = first;
                self.targets.pop();
                self.depth -= 1;
                self.push_joining(Instruction::EndLoop { skip: 0 });
            }
            Statement::Break => {
                let depth = self.targets.last().map_or(0, |t| self.depth - t.depth);
                self.push_joining(Instruction::Break { depth, skip: 0 });
            }
            Statement::Continue => {
                let depth = self.targets.iter().rev().find(|t| t.is_loop).map_or(0, |t| self.depth - t.depth);
                self.push_joining(Instruction::Continue { depth, skip: 0 });
            }
            Statement::Return { value } => {
                if let Some(value) = value {
                    let values = self.slots(*value)?;
                    for (d, a) in self.result.clone().into_iter().zip(values) {
                        self.push(Instruction::Assign { d, a });
                    }
                }
                let depth = self.depth;
                self.push_joining(Instruction::Return { depth, skip: 0 });
            }
            Statement::ControlBarrier(flags) => self.push(Instruction::Barrier(*flags)),
            Statement::Store { pointer, value } => self.store(*pointer, *value)?,
            Statement::Atomic { pointer, fun, value, result } => {
                self.atomic(*pointer, fun, *value, *result)?;
            }
            Statement::WorkGroupUniformLoad { pointer, result } => {
                self.push(Instruction::Barrier(naga::Barrier::WORK_GROUP));
                let loaded = self.load(*pointer, true)?;
                self.push(Instruction::Barrier(naga::Barrier::WORK_GROUP));
                self.set(*result, loaded);
            }
            Statement::Call { function, arguments, result } => {
                let mut passed = Vec::new();
                for argument in arguments {
                    passed.extend(self.slots(*argument)?);
                }
                let routine = &self.c.routines[function];
                let (begin, into, from) = (routine.begin, routine.arguments.concat(), routine.result.clone());
                self.copy_all(&into, &passed);
                self.push(Instruction::Call { function: begin });
                if let Some(result) = result {
                    let copies = self.copies(&from);
                    self.set(*result, copies);
                }
            }
            Statement::SubgroupBallot { result, predicate } => {
                let mask = self.ballot(*predicate)?;
                self.set(*result, mask);
            }
            Statement::SubgroupGather { mode, argument, result } => {
                let gathered = self.gather(mode, *argument)?;
                self.set(*result, gathered);
            }
            Statement::SubgroupCollectiveOperation { op, collective_op, argument, result } => {
                let collected = self.collective(*op, *collective_op, *argument)?;
                self.set(*result, collected);
            }
            Statement::CooperativeStore { target, data } => self.store_tile(*target, data, span)?,
            other => {
                let name = kind_name(other);
                return Err(self.c.unsupported(&format!("the statement {name}"), span));
            }
        }
        Ok(())
    }

    fn switch(&mut self, selector: Handle<Expression>, cases: &'a [naga::SwitchCase]) -> Result<()> {
        let selector = self.slot(selector)?;
        self.push(Instruction::Switch);
        self.depth += 1;
        self.targets.push(JumpTarget { is_loop: false, depth: self.depth });
        let bits = |value: SwitchValue| match value {
            SwitchValue::I32(x) => Some(x as u32),
            SwitchValue::U32(x) => Some(x),
            SwitchValue::Default => None,
        };
        let all: Vec<u32> = cases.iter().filter_map(|c| bits(c.value)).collect();
        // Cases that fall through share the body of the next one that has a body.
        let mut shared = Vec::new();
        let mut default = false;
        for case in cases {
            default |= case.value == SwitchValue::Default;
            shared.extend(bits(case.value));
            if case.fall_through && case.body.is_empty() {
                continue;
            }
            // The default takes what no other case takes.
            let list =
                if default { all.iter().copied().filter(|v| !shared.contains(v)).collect() } else { shared.clone() };
            let (table, n) = (self.c.code.tables.len() as u32, list.len() as u32);
            self.c.code.tables.extend(list);
            let at = self.c.code.ops.len();
            self.push(Instruction::Case { selector, table, n, default, next: 0 });
            self.joins.push(Vec::new());
            self.block(&case.body)?;
            let next = self.here();
            self.join(next);
            self.c.code.ops[at] = Instruction::Case { selector, table, n, default, next };
            shared.clear();
            default = false;
        }
        self.targets.pop();
        self.depth -= 1;
        self.push_joining(Instruction::EndSwitch { skip: 0 });
        Ok(())
    }

    /// Points the jumps that wait for the next join to `to`.
    pub(super) fn join(&mut self, to: u32) {
        for at in self.joins.pop().unwrap_or_default() {
            match &mut self.c.code.ops[at] {
                Instruction::EndIf { skip }
                | Instruction::EndSwitch { skip }
                | Instruction::EndLoop { skip }
                | Instruction::Break { skip, .. }
                | Instruction::Continue { skip, .. }
                | Instruction::Return { skip, .. } => *skip = to,
                _ => {}
            }
        }
    }

    /// Adds an instruction that jumps to the next join if no lane is left.
    fn push_joining(&mut self, op: Instruction) {
        let at = self.c.code.ops.len();
        self.push(op);
        if let Some(joins) = self.joins.last_mut() {
            joins.push(at);
        }
    }
}
