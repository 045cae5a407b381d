//! Reuse of loaded elements in tiled convolutions. Tiles and masks are products over their axes.

/// One axis of a tile of outputs, under a mask of odd length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis {
    /// Outputs along the axis.
    pub tile: u64,
    /// Length of the mask: `2 r + 1`.
    pub mask: u64,
    /// Whether the tile is at the end of the array, where part of the mask is outside.
    pub boundary: bool,
}

impl Axis {
    /// Makes an axis inside the array.
    pub fn inside(tile: u64, mask: u64) -> Self {
        Self { tile, mask, boundary: false }
    }

    /// Makes an axis at the end of the array.
    pub fn at_boundary(tile: u64, mask: u64) -> Self {
        Self { tile, mask, boundary: true }
    }

    fn radius(&self) -> u64 {
        self.mask / 2
    }

    /// Returns the elements that the outputs read, with repetitions.
    pub fn reads(&self) -> u64 {
        self.tile * self.mask - if self.boundary { self.beyond_an_end() } else { 0 }
    }

    /// Reads beyond one end of the tile: r, r - 1, ... of the outputs from that end on.
    fn beyond_an_end(&self) -> u64 {
        let (r, outputs) = (self.radius(), self.tile.min(self.radius()));
        (2 * r + 1 - outputs) * outputs / 2
    }

    /// Returns the elements of the tile and its halo.
    pub fn loads(&self) -> u64 {
        self.tile + self.radius() * if self.boundary { 1 } else { 2 }
    }

    /// Returns the number of reads per loaded element, over all axes.
    ///
    /// ```
    /// use tilework::analysis::Axis;
    ///
    /// assert_eq!(Axis::reuse(&[Axis::inside(16, 9); 2]), 36.0);
    /// ```
    pub fn reuse(axes: &[Axis]) -> f64 {
        let product = |of: fn(&Axis) -> u64| axes.iter().map(of).product::<u64>() as f64;
        product(Axis::reads) / product(Axis::loads)
    }

    /// Returns the bytes loaded per operation, with two operations per element read. A tile of 1 stands for outputs
    /// that load for themselves.
    ///
    /// ```
    /// use tilework::analysis::Axis;
    ///
    /// assert_eq!(Axis::bytes_per_operation(&[Axis::inside(1, 9); 2], 4), 2.0);
    /// ```
    pub fn bytes_per_operation(axes: &[Axis], element_bytes: u64) -> f64 {
        element_bytes as f64 / (2.0 * Axis::reuse(axes))
    }
}

/// Returns the reads that find their element in the tile, if the halo is left to the cache (strategy 3).
pub fn reads_from_shared(axes: &[Axis]) -> u64 {
    axes.iter().map(|a| a.tile * a.mask - 2 * a.beyond_an_end()).product()
}

#[cfg(test)]
mod tests;
