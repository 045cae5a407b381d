use super::{Product, ProductTypes, RowEnd};
use crate::program::prelude::*;

/// The range of a kernel past the last element of a batch: the longest side of a tile.
const BEHIND: usize = 256;

/// The layout of one matrix: its stored rows, their length, and the distance between them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DenseLayout {
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) ld: usize,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchLayout {
    pub(crate) at: DenseLayout,
    /// Elements from the first to the last of one matrix.
    pub(crate) span: usize,
    /// Elements from one matrix to the next.
    pub(crate) stride: usize,
}

impl DenseLayout {
    /// Counts the elements from the first to the last of the matrix `operand`.
    pub(crate) fn span(self, name: &str, operand: &str) -> Result<usize> {
        let Self { rows, cols, ld } = self;
        if ld < cols {
            return Err(err!(
                InvalidArgument,
                "{name}: ld{operand} = {ld} is below {cols}, the length of a row of {operand} ({rows} x {cols} \
                 as stored); a leading dimension counts the elements from one row to the next"
            ));
        }
        if rows == 0 || cols == 0 {
            return Ok(0);
        }
        // All rows but the last have their full leading dimension. Elements after the last row are not touched.
        Ok(elements(name, operand, &[rows, ld])? - (ld - cols))
    }

    pub(super) fn vec4s(self) -> bool {
        self.ld.is_multiple_of(4) && self.cols.is_multiple_of(4)
    }
}

impl Product {
    pub(crate) fn layout_a(&self) -> DenseLayout {
        let (rows, cols) = if self.trans_a { (self.k, self.m) } else { (self.m, self.k) };
        DenseLayout { rows, cols, ld: self.lda.unwrap_or(cols) }
    }

    pub(crate) fn layout_b(&self) -> DenseLayout {
        let (rows, cols) = if self.trans_b { (self.n, self.k) } else { (self.k, self.n) };
        DenseLayout { rows, cols, ld: self.ldb.unwrap_or(cols) }
    }

    pub(crate) fn layout_c(&self) -> DenseLayout {
        DenseLayout { rows: self.m, cols: self.n, ld: self.ldc.unwrap_or(self.n) }
    }

    pub(crate) fn layouts(&self, name: &str) -> Result<[BatchLayout; 3]> {
        let layout = |i: usize, operand, at: DenseLayout| {
            let span = at.span(name, operand)?;
            let stride = match self.strides {
                Some(strides) => strides[i],
                None => elements(name, operand, &[at.rows, at.ld])?,
            };
            Ok(BatchLayout { at, span, stride })
        };
        let layouts =
            [layout(0, "a", self.layout_a())?, layout(1, "b", self.layout_b())?, layout(2, "c", self.layout_c())?];
        let BatchLayout { at: DenseLayout { rows, cols, ld }, span, stride } = layouts[2];
        let side_by_side = stride >= cols && stride.saturating_mul(self.batch.saturating_sub(1)) <= ld - cols;
        if self.batch > 1 && stride < span && !side_by_side {
            return Err(err!(
                InvalidArgument,
                "{name}: with a stride of {stride} the matrices of c ({rows} x {cols}, ldc = {ld}) overlap; take a \
                 stride of at least {span}, the elements of one, or place them side by side: a stride of at least \
                 {cols} and an ldc of at least (batch - 1) * stride + {cols}"
            ));
        }
        Ok(layouts)
    }

    /// Says if the matrices of an operand can be bound as vec4s.
    pub(super) fn vec4s(&self, BatchLayout { at, span, stride }: BatchLayout) -> bool {
        // An operand without elements is bound as one of four bytes.
        span > 0 && at.vec4s() && (self.batch == 1 || stride.is_multiple_of(4))
    }

    pub(crate) fn bias_len(&self) -> usize {
        if self.row_bias { self.m } else { self.n }
    }

    /// The operands: a, b, the scalars and the bias if there are any, and c.
    pub(crate) fn operands(&self, name: &str, layouts: [BatchLayout; 3], types: ProductTypes) -> Result<Vec<Operand>> {
        let ProductTypes { factors, result } = types;
        let matrices = |i: usize, operand, dtype, access| {
            let BatchLayout { span, stride, .. } = layouts[i];
            let len = match self.batch {
                0 => 0,
                _ if span == 0 => 0,
                batch => elements(name, operand, &[batch - 1, stride])?.saturating_add(span),
            };
            Ok(Operand { name: operand, dtype, len, access })
        };
        let mut operands = Vec::with_capacity(5);
        operands.push(matrices(0, "a", factors, Access::Read)?);
        operands.push(matrices(1, "b", factors, Access::Read)?);
        if self.scalars {
            operands.push(Operand { name: "scalars", dtype: DType::F32, len: 2, access: Access::Read });
        }
        if self.bias {
            operands.push(Operand { name: "bias", dtype: result, len: self.bias_len(), access: Access::Read });
        }
        if let Some(end) = self.row_end {
            let len = elements(name, "rows", &[4, self.batch, self.m])?;
            operands.push(Operand { name: "rows", dtype: DType::F32, len, access: Access::Read });
            if end == RowEnd::Slopes {
                operands.push(matrices(2, "weights", result, Access::Read)?);
            }
        }
        operands.push(matrices(2, "c", result, Access::ReadWrite)?);
        Ok(operands)
    }

    /// Checks that the device has the type of the factors and holds every operand.
    pub(super) fn check_operands(&self, name: &str, operands: &[Operand], profile: &DeviceProfile) -> Result<()> {
        for operand in operands {
            let advice = match (self.batched, operand.name) {
                (false, _) => "compute blocks of C in separate calls",
                (true, "bias") => "take fewer rows or columns in a call",
                (true, _) => "take fewer products in a call",
            };
            if self.batched && !["bias", "scalars"].contains(&operand.name) {
                let end = operand.len.saturating_add(BEHIND);
                index_u32(name, &format!("the end of {} and a tile", operand.name), end)?;
            }
            profile.check_bindings(name, std::slice::from_ref(operand), advice)?;
        }
        Ok(())
    }
}

pub(super) fn check_type(name: &str, dtype: DType, profile: &DeviceProfile) -> Result<()> {
    let requires = Requires { f16: dtype == DType::F16, ..Requires::NOTHING };
    match requires.missing(profile) {
        None => Ok(()),
        Some(missing) => {
            Err(err!(Unsupported, "{name}: elements of f16 need {missing}, {}; convert them to f32", profile.lacks()))
        }
    }
}

#[cfg(test)]
mod tests;
