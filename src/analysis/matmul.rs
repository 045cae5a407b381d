//! Operations and memory traffic of a matrix product.

use crate::error::{Result, err};

/// The product of an m x k and a k x n matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Matmul {
    /// Rows of the result.
    pub m: u64,
    /// Columns of the result.
    pub n: u64,
    /// Terms summed for each element of the result.
    pub k: u64,
}

impl Matmul {
    /// Returns the multiplications and additions of the result.
    ///
    /// ```
    /// use tilework::analysis::Matmul;
    ///
    /// assert_eq!(Matmul { m: 100, n: 92, k: 141 }.flop(), 2_594_400);
    /// ```
    pub fn flop(&self) -> u64 {
        2 * self.m * self.n * self.k
    }

    /// Returns the operations of blocks that compute full `tile` x `tile` tiles in full steps of `tile` terms.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) if `tile` is 0.
    pub fn flop_executed(&self, tile: u64) -> Result<u64> {
        if tile == 0 {
            return Err(err!(InvalidArgument, "flop_executed: tiles of 0 x 0; take at least 1 x 1"));
        }
        let blocks = self.m.div_ceil(tile) * self.n.div_ceil(tile);
        Ok(2 * blocks * tile * tile * self.k.div_ceil(tile) * tile)
    }

    /// Returns the elements read by blocks that each compute `rows` x `columns` of the result: A is read once per
    /// column of tiles, B once per row of tiles. 1 x 1 is the naive kernel.
    pub fn elements_read(&self, rows: u64, columns: u64) -> u64 {
        let (rows, columns) = (rows.max(1), columns.max(1));
        self.m * self.k * self.n.div_ceil(columns) + self.k * self.n * self.m.div_ceil(rows)
    }

    /// Returns the operations per element that such blocks read or write.
    pub fn operations_per_access(&self, rows: u64, columns: u64) -> f64 {
        self.flop() as f64 / (self.elements_read(rows, columns) + self.m * self.n) as f64
    }

    /// Returns the operations per byte, for elements of `element_bytes`: the kernel's intensity on the roofline.
    pub fn intensity(&self, rows: u64, columns: u64, element_bytes: u64) -> f64 {
        self.operations_per_access(rows, columns) / element_bytes as f64
    }

    /// Returns the intensity if every element were read once.
    pub fn best_intensity(&self, element_bytes: u64) -> f64 {
        self.intensity(self.m, self.n, element_bytes)
    }
}

#[cfg(test)]
mod tests;
