//! How C is divided among workgroups and threads, and the checks that every variant needs.

use crate::error::{Result, err};
use crate::program::{DeviceProfile, row_name};

/// The tile of a matrix product: a workgroup computes `m` x `n` elements of C, `k` steps of the inner extent at a
/// time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProductTile {
    /// Rows of C.
    pub m: u32,
    /// Columns of C.
    pub n: u32,
    /// Steps of the inner extent.
    pub k: u32,
}

/// The part of a [`ProductTile`] that one thread computes, or one subgroup on cooperative matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ThreadTile {
    /// Rows of C.
    pub rows: u32,
    /// Columns of C.
    pub columns: u32,
}

impl ProductTile {
    pub(crate) fn elements(self) -> u64 {
        u64::from(self.m) * u64::from(self.n)
    }
}

/// A division of C: the tile of a workgroup, and the part of it that one thread or subgroup computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Division {
    pub(crate) tile: ProductTile,
    pub(crate) thread: [u32; 2],
    pub(crate) pace: Pace,
}

/// How fast a division is on a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    pub(crate) percent: u32,
    /// Nanoseconds of a step of k where a processor has one tile.
    pub(crate) alone: u32,
    /// Nanoseconds of the first loads and the last stores of a tile.
    pub(crate) start: u32,
}

impl Pace {
    /// Of a division that was not measured.
    const TYPICAL: Self = Self { percent: 50, alone: 600, start: 2000 };
}

impl Division {
    pub(crate) const fn new(tile: [u32; 3], thread: [u32; 2]) -> Self {
        let [m, n, k] = tile;
        Self { tile: ProductTile { m, n, k }, thread, pace: Pace::TYPICAL }
    }

    pub(crate) const fn pace(self, percent: u32, [alone, start]: [u32; 2]) -> Self {
        Self { pace: Pace { percent, alone, start }, ..self }
    }

    pub(crate) fn name(&self) -> String {
        row_name([self.tile.m, self.tile.n, self.tile.k], self.thread)
    }

    pub(crate) fn threads(&self) -> u64 {
        u64::from(self.tile.m / self.thread[0].max(1)) * u64::from(self.tile.n / self.thread[1].max(1))
    }

    pub(crate) fn tiles(&self, m: usize, n: usize) -> u64 {
        let ProductTile { m: tile_m, n: tile_n, .. } = self.tile;
        (m as u64).div_ceil(tile_m.into()).saturating_mul((n as u64).div_ceil(tile_n.into()))
    }

    pub(crate) fn total(&self, m: usize, n: usize) -> u64 {
        self.tiles(m, n).saturating_mul(self.threads())
    }

    pub(super) fn text(&self, name: &str) -> String {
        let ProductTile { m, n, k } = self.tile;
        format!("{name}: the tile {m} x {n} x {k}")
    }

    /// Rejects a side of 0, and a tile that is not made of whole thread tiles. `right`: the variant offers this
    /// thread tile; `has` lists those it offers.
    pub(super) fn check_sides(&self, name: &str, variant: &str, right: bool, has: &str) -> Result<()> {
        let Self { tile: ProductTile { m, n, k }, thread: [rows, columns], .. } = *self;
        if m == 0 || n == 0 || k == 0 {
            let text = self.text(name);
            return Err(err!(InvalidArgument, "{text} has a side of 0; sides are at least 1"));
        }
        if !right {
            return Err(err!(
                InvalidArgument,
                "{name}: a thread of `{variant}` cannot compute {rows} x {columns} elements of C; the thread tiles \
                 of this variant are {has}"
            ));
        }
        if m % rows != 0 || n % columns != 0 {
            return Err(err!(
                InvalidArgument,
                "{} is not made of whole thread tiles of {rows} x {columns}, which `{variant}` needs; take multiples \
                 of them",
                self.text(name)
            ));
        }
        Ok(())
    }

    /// Rejects a workgroup of `x` x `y` threads and `bytes` of workgroup memory that the device cannot run.
    pub(super) fn check_limits(&self, name: &str, [x, y]: [u64; 2], bytes: u64, profile: &DeviceProfile) -> Result<()> {
        let limits = &profile.limits;
        let threads = self.threads();
        let [max_x, max_y, _] = limits.max_workgroup_size;
        if threads > limits.max_invocations.into() || x > max_x.into() || y > max_y.into() {
            return Err(err!(
                TooLarge,
                "{} needs a workgroup of {x} x {y} = {threads} threads; {} allows {} in all, {max_x} \
                 along x and {max_y} along y; take smaller sides",
                self.text(name),
                profile.name,
                limits.max_invocations
            ));
        }
        if bytes > u64::from(limits.max_workgroup_bytes) {
            return Err(err!(
                TooLarge,
                "{} needs {bytes} bytes of workgroup memory; {} has {}; take smaller sides",
                self.text(name),
                profile.name,
                limits.max_workgroup_bytes
            ));
        }
        Ok(())
    }
}

/// Says if threads with sums in registers can compute `rows` x `columns`.
pub(crate) fn register_sides([rows, columns]: [u32; 2]) -> bool {
    let valid = |x: u32| x.is_multiple_of(4) && (4..=16).contains(&x);
    valid(rows) && valid(columns)
}
