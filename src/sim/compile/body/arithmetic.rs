//! Compiles arithmetic, component by component: operators, conversions, functions, matrix products.

use super::Body;
use crate::error::Result;
use crate::sim::code::{Instruction, NONE, Slot};
use crate::sim::compile::types::is_half;
use crate::sim::scalar::{self, Kind, Row1, Row2, Row3};
use naga::{BinaryOperator, Expression, Handle, MathFunction, Scalar, ScalarKind, TypeInner, UnaryOperator};

/// Returns a vector's component, or the scalar that stands for every component.
pub(super) fn component(of: &[Slot], i: usize) -> Slot {
    of[if of.len() == 1 { 0 } else { i }]
}

impl Body<'_, '_> {
    pub(super) fn unary(&mut self, op: UnaryOperator, expr: Handle<Expression>) -> Result<Vec<Slot>> {
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

    pub(super) fn binary(
        &mut self, op: BinaryOperator, left: Handle<Expression>, right: Handle<Expression>, whole: Handle<Expression>,
    ) -> Result<Vec<Slot>> {
        let (a, b) = (self.slots(left)?, self.slots(right)?);
        let scalar = self.scalar_of(left)?;
        if op == BinaryOperator::Multiply
            && let Some(product) = self.matrix_product(left, right, &a, &b)?
        {
            return Ok(product);
        }
        let Some((f, kind, guard)) = scalar::binary(op, scalar.kind) else {
            return Err(self.c.unsupported("this operator", self.span(whole)));
        };
        let result = self.scalar_of(whole)?;
        let n = a.len().max(b.len());
        let mut all = Vec::with_capacity(n);
        for i in 0..n {
            let (a, b) = (component(&a, i), component(&b, i));
            let d = self.one();
            match guard {
                Some(guard) => self.counted(kind, Instruction::Guarded { f, guard, d, a, b }),
                None => self.counted(kind, Instruction::Row2 { f, d, a, b }),
            }
            all.push(self.rounded(result, d));
        }
        Ok(all)
    }

    pub(super) fn cast(
        &mut self, expr: Handle<Expression>, kind: ScalarKind, convert: Option<u8>, whole: Handle<Expression>,
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
        // A bitcast.
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

    pub(super) fn math(
        &mut self, fun: MathFunction, arg: Handle<Expression>, more: [Option<Handle<Expression>>; 3],
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
        if let Some((f, kind)) = scalar::unary(fun, scalar.kind).filter(|_| rest.is_empty()) {
            let each = a.into_iter().map(|x| {
                let d = self.row1(kind, f, x);
                self.rounded(scalar, d)
            });
            return Ok(each.collect());
        }
        if let Some((f, kind)) = scalar::binary_math(fun, scalar.kind) {
            let each = (0..n.max(rest[0].len())).map(|i| {
                let d = self.row2(kind, f, component(&a, i), component(&rest[0], i));
                self.rounded(scalar, d)
            });
            return Ok(each.collect());
        }
        if let Some((f, kind)) = scalar::ternary_math(fun, scalar.kind) {
            let each = (0..n).map(|i| {
                let d = self.row3(kind, f, component(&a, i), component(&rest[0], i), component(&rest[1], i));
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
            return Ok(each.collect::<Vec<_>>().into_iter().map(|f| self.row1(Kind::Integer, f, a[0])).collect());
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
                let f = if scalar.kind == ScalarKind::Sint { scalar::EXTRACT_SIGNED } else { scalar::EXTRACT_UNSIGNED };
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
                let (first, second) =
                    if fun == M::Modf { (scalar::PART, scalar::WHOLE) } else { (scalar::FRACTION, scalar::EXPONENT) };
                let mut all: Vec<_> = a.iter().map(|x| self.row1(Kind::Add, first, *x)).collect();
                all.extend(a.iter().map(|x| self.row1(Kind::Add, second, *x)).collect::<Vec<_>>());
                Ok(all)
            }
            other => Err(self.c.unsupported(&format!("the function {other:?}"), self.span(whole))),
        }
    }

    fn matrix_product(
        &mut self, left: Handle<Expression>, right: Handle<Expression>, a: &[Slot], b: &[Slot],
    ) -> Result<Option<Vec<Slot>>> {
        use TypeInner::{Matrix, Vector};
        let scalar = self.scalar_of(left)?;
        let (rows, inner, columns) = match (self.ty(left), self.ty(right)) {
            (Matrix { columns, rows, .. }, Matrix { columns: n, .. }) => (*rows, *columns as usize, *n as usize),
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

    fn each2(&mut self, kind: Kind, f: Row2, scalar: Scalar, a: &[Slot], b: &[Slot]) -> Vec<Slot> {
        let each = a.iter().enumerate().map(|(i, x)| {
            let d = self.row2(kind, f, *x, component(b, i));
            self.rounded(scalar, d)
        });
        each.collect()
    }

    fn length(&mut self, scalar: Scalar, a: &[Slot]) -> Slot {
        let square = self.sum_of_products(scalar, a, a);
        let d = self.row1(Kind::Special, scalar::SQRT, square);
        self.rounded(scalar, d)
    }

    /// Rounds if the type is f16.
    fn rounded(&mut self, scalar: Scalar, d: Slot) -> Slot {
        if is_half(scalar) {
            self.push(Instruction::Row1 { f: scalar::ROUND_F16, d, a: d });
        }
        d
    }

    pub(super) fn row1(&mut self, kind: Kind, f: Row1, a: Slot) -> Slot {
        let d = self.one();
        self.counted(kind, Instruction::Row1 { f, d, a });
        d
    }

    pub(super) fn row2(&mut self, kind: Kind, f: Row2, a: Slot, b: Slot) -> Slot {
        let d = self.one();
        self.counted(kind, Instruction::Row2 { f, d, a, b });
        d
    }

    pub(super) fn row3(&mut self, kind: Kind, f: Row3, a: Slot, b: Slot, c: Slot) -> Slot {
        let d = self.one();
        self.counted(kind, Instruction::Row3 { f, d, a, b, c });
        d
    }
}
