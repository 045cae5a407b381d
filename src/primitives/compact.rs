//! Kernels that select, partition, unique and run-length share: kept elements move to the front, in order.

use super::lookback::Posts;
use super::sets;
use crate::program::prelude::*;
use std::sync::Arc;

const HIERARCHICAL: Variant =
    Variant::portable("hierarchical", "count, scan, scatter; ranks from bit masks in workgroup memory");
const SUBGROUP: Variant = Variant::subgroups("subgroup", "count, scan, scatter; ranks from ballots of subgroups");
const LOOKBACK: Variant =
    Variant::portable("lookback", "one pass: each tile looks back at the counts of earlier tiles");

/// Variants of ops that can run in one pass.
pub(super) const VARIANTS: &[Variant] = &[HIERARCHICAL, SUBGROUP, LOOKBACK];
/// Variants of ops that need the number of all kept elements before they move any.
pub(super) const TWO_PASSES: &[Variant] = &[HIERARCHICAL, SUBGROUP];

/// Decides by its value which elements [`Select`](crate::Select) and [`Partition`](crate::Partition) keep.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let x = gpu.upload(&[3.0f32, -1.0, 2.0])?;
/// let (kept, count) = gpu.select_if(&x, Predicate::custom("fn keep(x: T) -> bool { return x > 0.0; }"))?;
/// assert_eq!(count.read()?, [2]);
/// assert_eq!(kept.slice(..2)?.read()?, [3.0, 2.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Predicate {
    /// Keeps elements that are not 0; NaN is kept.
    NonZero,
    /// Keeps elements for which your WGSL function `fn keep(x: T) -> bool` returns true, where `T` is the element type
    /// (`f32` for f16). It is validated, and runs as [`CustomOp`](crate::CustomOp) says.
    Custom(Arc<str>),
}

impl Predicate {
    /// Creates a predicate from the text of [`Custom`](Self::Custom).
    pub fn custom(wgsl: &str) -> Self {
        Self::Custom(wgsl.into())
    }
}

/// The rule that decides which elements are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Keep {
    /// Elements with a nonzero flag, the second operand.
    Flagged,
    Where(Predicate),
    /// Elements that differ from the one before.
    Heads,
    /// Sorted elements with a partner in a second sorted array, of this length, or without one.
    Partner {
        others: usize,
        alone: bool,
    },
    /// The same; a walk of both arrays marks them before.
    Marked {
        others: usize,
        alone: bool,
    },
}

kernel_params! {
    struct CompactTileParams { n: u32, tiles: u32, first_tile: u32, all_tiles: u32, piece: u32, others: u32 }
}

kernel_params! {
    struct CompactScanParams { len: u32, blocks: u32 }
}

/// Tile counts that one workgroup scans.
const BLOCK: u64 = 2048;

pub(super) struct Compaction<'a> {
    pub(super) op: &'static str,
    /// The kernel that moves elements to their places.
    pub(super) scatter: &'static str,
    pub(super) keep: &'a Keep,
    pub(super) variant: &'a str,
    pub(super) variants: &'static [Variant],
    /// For tests: in `lookback`, one tile in `leave_out` posts nothing; 0 turns this off.
    pub(super) leave_out: u32,
    pub(super) n: usize,
    /// Reads the number of elements, at most `n`, from an operand `length`; with a second array, also its number, from
    /// the operand behind.
    pub(super) counted: bool,
    pub(super) dtype: DType,
    /// Operands written once for each kept element, or for each element.
    pub(super) outputs: &'a [(&'static str, DType)],
}

/// The state of the program before the last steps of an op.
pub(super) struct Compacted {
    pub(super) program: Program,
    pub(super) total: Binding,
    /// Spec and first bindings of the kernel that scatters.
    pub(super) spec: Spec,
    pub(super) bindings: Vec<Binding>,
    grid: Grid,
    params: CompactTileParams,
    scatter: &'static str,
}

/// Elements up to which software drivers look back. us of `lookback` and `subgroup`, Mesa 22.3 and SwiftShader: unique
/// of 5000 94, 164 and 228, 818; of 100,000 715, 839 and 4739, 8874.
pub(super) const FEW: usize = 1 << 20;

/// The variant that `auto` takes for `n` elements, and why.
pub(super) fn policy(n: usize, one_pass: bool, profile: &DeviceProfile) -> (&'static str, String) {
    if one_pass && profile.quirks.serial_workgroups && n <= FEW {
        ("lookback", "few dispatches, which cost more than the waits".into())
    } else if one_pass && !profile.quirks.waiting_starves {
        ("lookback", "reads every element once, and never waits forever for another workgroup".into())
    } else if profile.features.subgroups && n < 1 << 22 {
        // Partition of 2^20 u32 on an H100 (Vulkan, driver 580.159.04): 19.7 us against 21.4; of 2^28 1593 us
        // against 1419.
        ("subgroup", "ballots rank a subgroup of elements at once".into())
    } else {
        ("hierarchical", "bit masks in workgroup memory need no subgroups".into())
    }
}

/// Threads of a workgroup of `lookback`, and elements of a thread: up to 32.
fn sweep_tile(profile: &DeviceProfile, n: u64, keep: &Keep) -> (u32, u32) {
    if profile.quirks.serial_workgroups {
        return (64, 16);
    }
    let most = if profile.features.subgroups { profile.limits.max_invocations } else { 256 };
    // Half of u32 kept, on an H100 (Vulkan, driver 580.159.04): 2^16 in 10 us, 2^20 in 12 us; 2^27 by flags in 475 us
    // (1024 x 32 488), by value in 330. Unique of 2^26, three of four kept: 205 us (512 x 16 225).
    match keep {
        _ if n < 1 << 22 || most < 512 => (most.min(512), 16),
        Keep::Heads => (512, 28),
        _ => (512, 32),
    }
}

impl Compaction<'_> {
    /// Adds the operands and all dispatches before the one that moves elements.
    pub(super) fn lower(self, profile: &DeviceProfile) -> Result<Compacted> {
        let Self { op, n, dtype, .. } = self;
        if !matches!(dtype, DType::F32 | DType::F16 | DType::I32 | DType::U32) {
            return Err(err!(Unsupported, "{op}: elements of {dtype}; convert them to f32, f16, i32 or u32"));
        }
        let n32 = index_u32(op, "n", n)?;
        let one_pass = self.variants.contains(&LOOKBACK);
        let (variant, decision) = choose(op, self.variant, self.variants, profile, || policy(n, one_pass, profile))?;
        let once = variant.name == "lookback";
        let subgroups = variant.requires.subgroups || once && profile.features.subgroups;
        let (workgroup_size, items) = if once { sweep_tile(profile, n as u64, self.keep) } else { (256, 16) };
        let mut program = Program::new(op, decision);
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        program.operands.push(operand("input", dtype, n, Access::Read));
        let flagged = *self.keep == Keep::Flagged;
        if flagged {
            program.operands.push(operand("flags", DType::U32, n, Access::Read));
        }
        let others = match *self.keep {
            Keep::Partner { others, .. } | Keep::Marked { others, .. } => Some(others),
            _ => None,
        };
        if let Some(others) = others {
            program.operands.push(operand("others", dtype, others, Access::Read));
        }
        let lengths: &[&'static str] = match others {
            _ if !self.counted => &[],
            Some(_) => &["a_length", "b_length"],
            None => &["length"],
        };
        program.operands.extend(lengths.iter().map(|name| operand(name, DType::U32, 1, Access::Read)));
        for &(name, dtype) in self.outputs {
            program.operands.push(operand(name, dtype, n, Access::Write));
        }
        program.operands.push(operand("count", DType::U32, 1, Access::Write));
        profile.check_bindings(op, &program.operands, "split the arrays into chunks, a call each")?;
        // The number of kept elements is known only at the end, so the cost counts only reads.
        let read = program.operands.iter().filter(|o| o.access == Access::Read);
        program.cost = Cost { flop: n as f64, bytes: read.map(|o| o.bytes() as f64).sum() };
        let total = Binding::operand(program.operands.len() - 1, &program.operands);

        let arrays = 1 + u32::from(flagged || others.is_some());
        let marked = if let Keep::Marked { alone, .. } = *self.keep { Some(alone) } else { None };
        // Marks stand for the second array, whose length is no longer of interest.
        let inputs = arrays + if marked.is_some() { u32::from(self.counted) } else { lengths.len() as u32 };
        let spec = Spec::new()
            .slot("element", element_fragment(dtype))
            .flag("HALVES", dtype == DType::F16)
            .flag("SUBGROUPS", subgroups)
            .flag("LARGE_SUBGROUPS", subgroups && profile.subgroup_sizes.1 > 32)
            .constant("WORKGROUP_SIZE", workgroup_size)
            .constant("VEC4S", items / 4)
            .constant("COUNTS_BINDING", inputs + 1);
        let spec = match self.keep {
            Keep::Flagged => spec.slot("keep", Fragment::Library("primitives/keep_flagged")),
            Keep::Heads => {
                let spec = spec.slot("keep", Fragment::Library("primitives/unique"));
                spec.flag("FLOAT_KEYS", dtype.is_float()).flag("ORDERED", subgroups)
            }
            Keep::Marked { .. } => spec.slot("keep", Fragment::Library("primitives/keep_marked")),
            Keep::Partner { alone, .. } => {
                let file = if *alone { "primitives/set_difference" } else { "primitives/set_intersection" };
                let spec = spec.slot("keep", Fragment::Library(file)).flag("ORDERED", true);
                spec.flag("FLOAT", dtype.is_float()).flag("SIGNED", dtype == DType::I32)
            }
            Keep::Where(Predicate::NonZero) => spec.slot("keep", Fragment::Library("primitives/keep_where")),
            Keep::Where(Predicate::Custom(text)) => {
                spec.slot("keep", Fragment::Library("primitives/keep_where")).slot("predicate", Fragment::of_user(text))
            }
        };
        let spec = limited(spec, self.counted, arrays + 1);
        let tiles = (n as u64).div_ceil(u64::from(workgroup_size * items));
        let mut bindings: Vec<_> = (0..inputs as usize).map(|i| Binding::operand(i, &program.operands)).collect();
        if let (Some(alone), Some(others), true) = (marked, others, n > 0) {
            bindings[1] = sets::mark(&mut program, [n, others], dtype, (alone, self.counted), profile)?;
        }
        let all = tiles as u32;
        let others = others.map_or(0, |others| others as u32);
        let params = CompactTileParams { n: n32, tiles: all, first_tile: 0, all_tiles: all, piece: 0, others };
        let grid = Grid::fold(tiles);
        let mut spec = spec;
        if once && n > 0 {
            let all = Posts { tiles, words: 1, counted: false, chunks: 1 };
            let posts = program.scratch(4 * all.scratch_words());
            all.clear(&mut program, posts);
            bindings.extend([posts, total]);
            spec = all.spec(spec.flag("ONCE", true), profile, inputs + 1, self.leave_out);
            if subgroups {
                spec = spec.flag("NATIVE_ADD", true);
            }
        } else {
            let counts = program.scratch(4 * tiles);
            bindings.push(counts);
            if n > 0 {
                let count = Kernel::library("primitives/compact_count", "compact_count", spec.clone());
                let count = program.kernel(count);
                program.dispatch(count, &params, bindings.clone(), grid);
            }
            let sums = scan_counts(&mut program, counts, tiles, total);
            bindings.push(sums);
        }
        let spec = spec.constant("OUTPUT_BINDING", inputs + 3);
        Ok(Compacted { program, total, spec, bindings, grid, params, scatter: self.scatter })
    }
}

/// Scans the counts of tiles in blocks, and the sums of blocks, which it returns; `total` gets the sum of all.
pub(super) fn scan_counts(program: &mut Program, counts: Binding, tiles: u64, total: Binding) -> Binding {
    let blocks = tiles.div_ceil(BLOCK);
    let sums = program.scratch(4 * blocks);
    let scan = |entry| Kernel::library("primitives/compact_scan", entry, Spec::new());
    if tiles > 0 {
        let scan_blocks = program.kernel(scan("compact_scan_blocks"));
        let each = CompactScanParams { len: tiles as u32, blocks: blocks as u32 };
        program.dispatch(scan_blocks, &each, vec![counts, sums], Grid::fold(blocks));
    }
    let scan_sums = program.kernel(scan("compact_scan_sums"));
    let all = CompactScanParams { len: blocks as u32, blocks: 1 };
    program.dispatch(scan_sums, &all, vec![sums, total], Grid::fold(1));
    sums
}

impl Compacted {
    pub(super) fn operand(&self, name: &str) -> Option<Binding> {
        let index = self.program.operands.iter().position(|o| o.name == name)?;
        Some(Binding::operand(index, &self.program.operands))
    }

    /// Returns the tiles of the kernel that moves elements.
    pub(super) fn tiles(&self) -> u32 {
        self.params.tiles
    }

    /// Dispatches the kernel that moves elements; `outputs` are its last bindings.
    pub(super) fn scatter(&mut self, outputs: impl IntoIterator<Item = Binding>) {
        if self.params.n == 0 {
            return;
        }
        let kernel = self.program.kernel(Kernel::library(self.scatter, "compact_scatter", self.spec.clone()));
        let bindings = self.bindings.iter().copied().chain(outputs).collect();
        self.program.dispatch(kernel, &self.params, bindings, self.grid);
    }
}
