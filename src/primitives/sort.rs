//! Radix sort of keys, or of keys with values.

use super::WORDS;
use crate::element::{DType, Element};
use crate::error::{Result, err};
use crate::program::fit::{BoundChunk, runs_everywhere};
use crate::program::{
    self, Access, Asked, Binding, Comparison, Cost, DeviceProfile, Example, Grid, Input, Kernel, Op, Operand,
    Operation, Program, Resource, Role, Setting, Variant, by_type, choose, kernel_params, operands,
};
use crate::shader::{Fragment, Spec};
use crate::shape::round_up;
use std::ops::Range;

/// Stable sort of keys: `keys_out[i]` is the `i`-th of `keys` in order; values go with their keys.
///
/// # Shapes
/// `keys` and `keys_out` have `n` elements; [`with_values`](RadixSort::with_values) adds `values` and
/// `values_out`, as many of u32. Inputs keep their contents, and lie in other wgpu buffers than the outputs;
/// [`in_place`](RadixSort::in_place) has one read-write operand for both. Any length from 0 to the largest
/// buffer. With [`counted`](RadixSort::counted) an operand `count` of one u32 says on the device how many of
/// the `n` are sorted; what lies behind them is not touched in the output.
///
/// # Types and order
/// Keys of u32, i32, f32 and u64; ascending, or [`descending`](RadixSort::descending). Equal keys keep their
/// order either way. f32 has the total order -inf ... -0, +0 ... +inf; every NaN is last, ascending and
/// descending, and NaNs keep their order and their bits. [`bits`](RadixSort::bits) sorts by some bits of the
/// key's place in that order only, which takes fewer passes.
///
/// # Precision and determinism
/// Keys and values are moved, never computed with. Same input, same bits, on every device.
///
/// # Cost
/// A pass for each 8 bits. `onesweep` reads the keys once, and reads and writes keys and values once a pass:
/// 3 dispatches and one a pass. `counting` reads keys twice a pass: 3 dispatches a pass. Scratch is one
/// more of keys and values (none for a single pass that is not in place), and 2 KiB a tile or 1 KiB a block.
///
/// # Errors
/// [`Unsupported`](crate::ErrorKind::Unsupported) for keys of another type or a variant that the device cannot
/// run; [`InvalidArgument`](crate::ErrorKind::InvalidArgument) for bits that keys do not have;
/// [`TooLarge`](crate::ErrorKind::TooLarge) above the largest buffer, or, for `onesweep`, the largest binding.
///
/// # Algorithm
/// Least significant digit first. `onesweep`: A. Adinets and D. Merrill, *Onesweep* (2022), with look-back that
/// needs no forward progress, after T. Smith, R. Levien and J. Owens, *Decoupled Fallback* (2025);
/// `shaders/primitives/sort_onesweep.wgsl`. `counting`: `shaders/primitives/sort_scatter.wgsl`.
///
/// # Example
/// ```
/// use tilework::RadixSort;
/// use tilework::program::{DeviceProfile, Op};
///
/// let keys = RadixSort::new(1_000_000);
/// let pairs = RadixSort::new(1_000_000).descending(true).bits(0..16).with_values();
/// assert_eq!(Op::<f32>::lower(&keys, &DeviceProfile::h100())?.variant(), "onesweep");
/// assert_eq!(Op::<u32>::lower(&pairs, &DeviceProfile::webgpu_defaults())?.operands.len(), 4);
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RadixSort {
    n: usize,
    descending: bool,
    bits: Option<Range<u32>>,
    variant: String,
    tile: Option<(u32, u32)>,
    leave_out: u32,
    form: SortForm,
}

impl RadixSort {
    /// Sorts `n` keys.
    pub fn new(n: usize) -> Self {
        Self {
            n,
            descending: false,
            bits: None,
            variant: "auto".into(),
            tile: None,
            leave_out: 0,
            form: SortForm::default(),
        }
    }

    /// Moves a value of u32 with each key: operands `values` and `values_out`, which plans take by `with_values`.
    #[must_use]
    pub fn with_values(mut self) -> Self {
        self.form.values = true;
        self
    }

    /// Sorts where the keys lie: plans are recorded by `record_in_place`, and take values by `with_values_in_place`.
    #[must_use]
    pub fn in_place(mut self) -> Self {
        self.form.in_place = true;
        self
    }

    /// Takes the number of keys, at most `n`, from the device: an operand `count` of one u32, which plans take by
    /// `with_count`. A number above `n` counts as `n`.
    #[must_use]
    pub fn counted(mut self) -> Self {
        self.form.counted = true;
        self
    }

    /// Every way to run a sort.
    pub fn variants() -> &'static [Variant] {
        const VARIANTS: &[Variant] = &[
            Variant::portable("counting", "each pass counts digits, scans the counts and scatters"),
            Variant::subgroups(
                "onesweep",
                "counts all digits at once; a pass reads and writes once, by decoupled look-back",
            ),
        ];
        VARIANTS
    }

    /// Largest first. The default is smallest first.
    #[must_use]
    pub fn descending(mut self, wanted: bool) -> Self {
        self.descending = wanted;
        self
    }

    /// Sorts by these bits only, counted from the least significant; the default is all of them. Bits of
    /// signed and of floating keys are those of their place in the order, counted from 0.
    ///
    /// ```
    /// use tilework::RadixSort;
    /// use tilework::program::{DeviceProfile, Op};
    /// let sort = RadixSort::new(1000).bits(4..12).variant("counting"); // by (key >> 4) & 0xff
    /// assert_eq!(Op::<u32>::lower(&sort, &DeviceProfile::h100())?.dispatches.len(), 3);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    #[must_use]
    pub fn bits(mut self, bits: Range<u32>) -> Self {
        self.bits = Some(bits);
        self
    }

    /// Takes a variant by name; the default is `auto`.
    #[must_use]
    pub fn variant(mut self, name: &str) -> Self {
        name.clone_into(&mut self.variant);
        self
    }

    /// Invocations of a workgroup and keys of an invocation, instead of what the device's policy has: for
    /// tuning, and for tests with many small tiles.
    #[doc(hidden)]
    #[must_use]
    pub fn tile(mut self, workgroup_size: u32, items_per_thread: u32) -> Self {
        self.tile = Some((workgroup_size, items_per_thread));
        self
    }

    /// Lets one tile of `onesweep` in so many post nothing, as a device might that never runs it: for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn leave_out_posts(mut self, one_in: u32) -> Self {
        self.leave_out = one_in;
        self
    }
}

operands! {
    impl[T: Element,] RadixSort, T {
        fn record(keys: T, keys_out: T);
        fn record_in_place(keys: T);
        /// Values that go with the keys.
        optional with_values(values: u32, values_out: u32);
        /// Values that go with keys that are sorted where they lie.
        optional with_values_in_place(values: u32);
        /// How many keys there are.
        optional with_count(count: u32);
    }
}

impl<T: Element> Op<T> for RadixSort {
    crate::program::proven!();

    fn lower(&self, profile: &DeviceProfile) -> Result<Program> {
        SortLowering::new(self, self.form, T::DTYPE, profile)?.run()
    }
}

kernel_params! {
    struct BlockParams {
        n: u32,
        first: u32,
        block_len: u32,
        blocks: u32,
        first_block: u32,
        all_blocks: u32,
        shift: u32,
        mask: u32,
        window: u32,
        window_len: u32,
        items: u32,
    }
}
kernel_params! { struct SortScanParams { first: u32, len: u32, rows: u32 } }
kernel_params! {
    struct HistogramParams { n: u32, workgroups: u32, words: u32, begin_bit: u32, end_bit: u32, digit_bits: u32 }
}
kernel_params! { struct SweepParams { pass_index: u32, shift: u32, mask: u32, items: u32 } }

const RADIX: u64 = 256;
/// Words before the counts in the globals of `onesweep`.
const HEAD: u64 = 64;
/// Keys or words that an invocation takes at the most: a key has several rounds, all of which every driver runs.
const MOST_STEPS: u64 = 2048;
const _: () = assert!(runs_everywhere(24 * MOST_STEPS as usize));
/// Keys of an invocation whose steps are written out.
const MOST_ITEMS: u32 = 64;
/// Counts of `onesweep` have 30 bits beside two of flags.
const SWEEP_MOST: u64 = (1 << 30) - 1;

/// What operands there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct SortForm {
    values: bool,
    in_place: bool,
    counted: bool,
}

/// Constants that depend on the device.
struct SortPolicy {
    /// Invocations and keys of an invocation in a tile of `counting`.
    block_tile: (u32, u32),
    /// Workgroups that share the keys in `counting`.
    blocks: u64,
    /// The same of a tile of `onesweep`.
    sweep_tile: (u32, u32),
    /// Workgroups that count digits for `onesweep`.
    counters: u64,
    /// Invocations of the kernels that walk keys, counts or words without a tile.
    walkers: u32,
    /// Whether the steps over the keys of an invocation are written out.
    written_out: bool,
}

fn policy(profile: &DeviceProfile, key_size: u64, keys: u64) -> SortPolicy {
    let (_, largest) = profile.subgroup_sizes;
    if profile.quirks.serial_workgroups {
        // Barriers are dear on processors, and each invocation pays; more workgroups than cores gain nothing.
        let sweep_tile = (2 * largest.clamp(4, 32), 16);
        let block_tile = (8, 64);
        return SortPolicy {
            block_tile,
            blocks: 32,
            sweep_tile,
            counters: 32,
            walkers: 8,
            written_out: false,
        };
    }
    // Keys of u32 on an H100 (Vulkan, driver 580.159.04): 2^16 in 41 us (512 x 16 52, 512 x 22 57); 2^20 in 70 us
    // (256 x 8 92, 512 x 22 73, 1024 x 8 69); 2^28 33.6 G/s (512 x 18 29.7, 768 x 14 32.7, 1024 x 10 31.8, 384 x 26
    // 28.9, 256 x 12 29.5). Pairs follow: 44 us, 84 us, 27.5 G/s.
    let (threads, items) = match (key_size, keys) {
        (_, 0..0x4_0000) => (256, 8),
        (4, 0x4_0000..0x40_0000) => (512, 16),
        (4, _) => (512, 22),
        _ => (512, 10),
    };
    let block_items = if key_size == 4 { 8 } else { 4 };
    let mut sweep_tile = (threads, items);
    while !fits(profile, sweep_tile, key_size) && sweep_tile.1 > 1 {
        sweep_tile = if sweep_tile.0 > 256 { (256, sweep_tile.1) } else { (256, sweep_tile.1 - 1) };
    }
    while !fits(profile, sweep_tile, key_size) && sweep_tile.0 > largest.max(1) {
        sweep_tile.0 /= 2;
    }
    // 2^24 keys of u32 on the same card: 938 us (128 x 8 1298, 256 x 4 1179).
    let large = key_size == 4 && profile.limits.max_workgroup_bytes >= 32_768;
    let block_tile = if large { (256, 8) } else { (128, block_items) };
    SortPolicy { block_tile, blocks: 1056, sweep_tile, counters: 1056, walkers: 256, written_out: true }
}

/// Refuses a tile that no variant has.
fn check_tile((threads, items): (u32, u32), profile: &DeviceProfile) -> Result<()> {
    let most = profile.limits.max_invocations;
    let rows = threads.is_multiple_of(32) || matches!(threads, 8 | 16);
    if rows && (8..=most).contains(&threads) && (1..=MOST_ITEMS).contains(&items) {
        return Ok(());
    }
    Err(err!(
        InvalidArgument,
        "sort: tiles of {threads} invocations with {items} keys each; take 8, 16 or a multiple of 32 up to {most} of \
         them, with 1 to {MOST_ITEMS}"
    ))
}

/// Rows of the counts of a tile of `onesweep`: its subgroups, if they are as small as they can be.
fn sweep_rows(profile: &DeviceProfile, workgroup_size: u32) -> u32 {
    workgroup_size / profile.subgroup_sizes.0.max(1)
}

/// Tiles of `onesweep`.
fn sweep_tiles(n: u64, (workgroup, each): (u32, u32)) -> u64 {
    n.div_ceil((u64::from(workgroup) * u64::from(each)).max(1))
}

/// Whether the device has the invocations and workgroup memory for a tile of `onesweep`.
fn fits(profile: &DeviceProfile, (workgroup_size, items): (u32, u32), key_size: u64) -> bool {
    let rows = u64::from(sweep_rows(profile, workgroup_size));
    let keys = u64::from(workgroup_size) * u64::from(items);
    // Counts of rows or the tile, sums of rows, three words for each digit, and some besides.
    let bytes = (rows * 4 * RADIX).max(keys * key_size) + rows * 4 + 12 * RADIX + 32;
    workgroup_size <= profile.limits.max_invocations.min(profile.limits.max_workgroup_size[0])
        && bytes <= u64::from(profile.limits.max_workgroup_bytes)
}

/// Keys, and the values that go with them.
#[derive(Debug, Clone, Copy)]
struct SortItems {
    keys: Resource,
    values: Option<Resource>,
}

/// The digit of a pass.
#[derive(Debug, Clone, Copy)]
struct Digit {
    shift: u32,
    mask: u32,
}

struct SortLowering<'a> {
    n: u64,
    key_size: u64,
    form: SortForm,
    bits: Range<u32>,
    digit_bits: u32,
    passes: u32,
    spec: Spec,
    variant: &'static str,
    profile: &'a DeviceProfile,
    policy: SortPolicy,
    leave_out: u32,
    program: Program,
}

impl<'a> SortLowering<'a> {
    fn new(desc: &RadixSort, form: SortForm, dtype: DType, profile: &'a DeviceProfile) -> Result<Self> {
        let spec = key_spec(dtype, desc.descending)?;
        let key_size = dtype.size() as u64;
        let width = 8 * key_size as u32;
        let bits = desc.bits.clone().unwrap_or(0..width);
        if bits.start > bits.end || bits.end > width {
            return Err(err!(
                InvalidArgument,
                "sort: bits {} to {} of keys of {dtype}, which have {width}; begin and end must be in order and at most that",
                bits.start,
                bits.end
            ));
        }
        let mut policy = policy(profile, key_size, desc.n as u64);
        if let Some(tile) = desc.tile {
            check_tile(tile, profile)?;
            (policy.block_tile, policy.sweep_tile) = (tile, tile);
        }
        let limits = &profile.limits;
        let largest = limits.max_storage_binding.min(SWEEP_MOST * 4);
        let bytes = (desc.n as u64).saturating_mul(key_size);
        // Of the counts that tiles post.
        let posts = sweep_tiles(desc.n as u64, policy.sweep_tile).saturating_mul(4 * RADIX);
        let sweeps = if !profile.features.subgroups {
            Err(err!(Unsupported, "sort: no subgroup operations"))
        } else if posts > largest {
            Err(err!(
                TooLarge,
                "sort: the variant `onesweep` posts counts of {posts} bytes for {} keys; the most on {} are {largest}; take \
                 `counting`",
                desc.n,
                profile.name
            ))
        } else if bytes > largest {
            Err(err!(
                TooLarge,
                "sort: the variant `onesweep` binds all {} keys of {dtype} at once, {bytes} bytes; the most on {} are \
                 {largest}; take `counting`",
                desc.n,
                profile.name
            ))
        } else if !fits(profile, policy.sweep_tile, key_size)
            || !policy.sweep_tile.0.is_multiple_of(profile.subgroup_sizes.1.max(1))
        {
            Err(err!(
                Unsupported,
                "sort: the variant `onesweep` has no tile for {}, with subgroups of {} to {} and {} bytes of workgroup \
                 memory; take `counting`",
                profile.name,
                profile.subgroup_sizes.0,
                profile.subgroup_sizes.1,
                limits.max_workgroup_bytes
            ))
        } else {
            Ok(())
        };
        let (variant, decision) =
            choose("sort", &desc.variant, RadixSort::variants(), profile, || match &sweeps {
                Ok(()) if profile.quirks.serial_workgroups => ("counting", "processors run it faster".into()),
                Ok(()) => ("onesweep", "one reading and writing a pass".into()),
                Err(_) if !profile.features.subgroups => {
                    ("counting", "the device has no subgroup operations".into())
                }
                Err(_) => ("counting", "`onesweep` has too many keys for a binding, or no tile here".into()),
            })?;
        if variant.name == "onesweep" {
            sweeps?;
        }
        let mut program = Program::new("sort", decision);
        let operand = |name, dtype, access| Operand { name, dtype, len: desc.n, access };
        let input = if form.in_place { Access::ReadWrite } else { Access::Read };
        program.operands.push(operand("keys", dtype, input));
        if form.values {
            program.operands.push(operand("values", DType::U32, input));
        }
        if form.counted {
            program.operands.push(Operand { len: 1, ..operand("count", DType::U32, Access::Read) });
        }
        if !form.in_place {
            program.operands.push(operand("keys_out", dtype, Access::Write));
            if form.values {
                program.operands.push(operand("values_out", DType::U32, Access::Write));
            }
        }
        profile.check_buffers("sort", &program.operands, "sort in pieces and merge")?;
        // In place, keys must end where they began, so the passes are of an even number.
        let fewest = (bits.end - bits.start).div_ceil(8).max(1);
        let passes = if form.in_place { fewest.next_multiple_of(2) } else { fewest };
        let digit_bits = (bits.end - bits.start).div_ceil(passes);
        program.cost = Cost {
            flop: desc.n as f64 * f64::from(passes),
            bytes: program.operands.iter().map(|o| o.bytes() as f64).sum::<f64>()
                * if form.in_place { 2.0 } else { 1.0 },
        };
        Ok(Self {
            n: desc.n as u64,
            key_size,
            form,
            bits,
            digit_bits,
            passes,
            spec,
            variant: variant.name,
            profile,
            policy,
            leave_out: desc.leave_out,
            program,
        })
    }

    fn run(mut self) -> Result<Program> {
        if self.n == 0 {
            return Ok(self.program);
        }
        let input = self.operands("keys", "values");
        let output = if self.form.in_place { input } else { self.operands("keys_out", "values_out") };
        // Keys go back and forth between the output and scratch, and end in the output.
        let spare = if self.passes > 1 { Some(self.spare()) } else { None };
        let targets = (0..self.passes).map(|pass| {
            let rest = self.passes - 1 - pass;
            if rest.is_multiple_of(2) { output } else { spare.unwrap_or(output) }
        });
        let targets: Vec<SortItems> = targets.collect();
        let sources = std::iter::once(input).chain(targets.iter().copied());
        let moves: Vec<(SortItems, SortItems)> = sources.zip(targets.iter().copied()).collect();
        if self.variant == "onesweep" {
            self.onesweep(&moves);
        } else {
            self.counting(&moves)?;
        }
        Ok(self.program)
    }

    /// Operands by name.
    fn operands(&self, keys: &str, values: &str) -> SortItems {
        let find = |name| self.program.operands.iter().position(|o| o.name == name).map(Resource::Operand);
        SortItems { keys: find(keys).unwrap_or(Resource::Operand(0)), values: find(values) }
    }

    /// Scratch for all keys and values.
    fn spare(&mut self) -> SortItems {
        let keys = self.program.scratch(self.n * self.key_size).resource;
        let values = self.form.values.then(|| self.program.scratch(self.n * 4).resource);
        SortItems { keys, values }
    }

    fn digit(&self, pass: u32) -> Digit {
        let shift = (self.bits.start + pass * self.digit_bits).min(self.bits.end);
        Digit { shift, mask: (1 << self.digit_bits.min(self.bits.end - shift)) - 1 }
    }

    fn key_binding(&self, items: SortItems, part: BoundChunk) -> Binding {
        part.of(items.keys, self.key_size)
    }

    fn value_binding(&self, items: SortItems, part: BoundChunk) -> Option<Binding> {
        items.values.map(|resource| part.of(resource, 4))
    }

    fn count_binding(&self) -> Option<Binding> {
        let index = self.program.operands.iter().position(|o| o.name == "count")?;
        Some(Binding::operand(index, &self.program.operands))
    }

    fn scan_kernel(&mut self) -> usize {
        let spec = Spec::new().constant("WORKGROUP_SIZE", self.policy.walkers);
        self.program.kernel(Kernel::library("primitives/sort_scan", "sort_scan", spec))
    }

    /// The kernel that moves a tile of keys, with the steps of its invocations written out or in loops.
    fn tile_kernel(
        &mut self,
        file: &'static str,
        entry: &'static str,
        (workgroup_size, items): (u32, u32),
        spec: Spec,
    ) -> usize {
        let steps =
            if self.policy.written_out { "primitives/sort_steps" } else { "primitives/sort_steps_loop" };
        let spec = spec
            .constant("WORKGROUP_SIZE", workgroup_size)
            .constant("ITEMS_PER_THREAD", items)
            .flag("VALUES", self.form.values)
            .slot("steps", Fragment::Library(steps));
        self.program.kernel(Kernel::library(file, entry, spec))
    }

    /// Count, scan, scatter, for each pass.
    fn counting(&mut self, moves: &[(SortItems, SortItems)]) -> Result<()> {
        let tile = self.policy.block_tile;
        let (threads, tile_len) = (u64::from(tile.0), u64::from(tile.0) * u64::from(tile.1));
        // Parts begin at multiples of 256 bytes, of keys and of values.
        let most = self.profile.limits.max_storage_binding / self.key_size / 64 * 64;
        let parts: Vec<_> = BoundChunk::full(self.n, most).collect();
        let block_len = self.n.div_ceil(self.policy.blocks).min(MOST_STEPS * threads);
        let block_len = round_up(block_len, tile_len);
        let blocks = |part: &BoundChunk| part.count.div_ceil(block_len);
        let all_blocks: u64 = parts.iter().map(blocks).sum();
        let counts = self.program.scratch(4 * RADIX * all_blocks);
        let totals = self.program.scratch(4 * RADIX);
        let what = format_args!("the counts of {} keys", self.n);
        self.profile.check_scratch("sort", what, counts.size, "sort in pieces and merge")?;
        let spec = self.spec.clone().flag("COUNTED", self.form.counted);
        let count = self.program.kernel(Kernel::library(
            "primitives/sort_count",
            "sort_count",
            spec.clone().constant("WORKGROUP_SIZE", tile.0),
        ));
        let scan = self.scan_kernel();
        let spec = spec.constant("ROW", tile.0.min(32));
        let scatter = self.tile_kernel("primitives/sort_scatter", "sort_scatter", tile, spec);
        let counted = self.count_binding();
        for (pass, &(from, to)) in (0..).zip(moves) {
            let Digit { shift, mask } = self.digit(pass);
            let params = |part: &BoundChunk, first_block: u64, window: &BoundChunk| BlockParams {
                n: part.count as u32,
                first: part.first as u32,
                block_len: block_len as u32,
                blocks: blocks(part) as u32,
                first_block: first_block as u32,
                all_blocks: all_blocks as u32,
                shift,
                mask,
                window: window.first as u32,
                window_len: window.count as u32,
                items: tile.1,
            };
            let mut first_block = 0;
            for part in &parts {
                let bindings = [self.key_binding(from, *part), counts].into_iter().chain(counted).collect();
                let grid = Grid::fold(blocks(part));
                self.program.dispatch(count, &params(part, first_block, part), bindings, grid);
                first_block += blocks(part);
            }
            let rows = SortScanParams { first: 0, len: all_blocks as u32, rows: RADIX as u32 };
            self.program.dispatch(scan, &rows, vec![counts, totals], Grid::fold(RADIX));
            let mut first_block = 0;
            for part in &parts {
                for window in &parts {
                    let keys = [self.key_binding(from, *part), self.key_binding(to, *window)];
                    let values = [self.value_binding(from, *part), self.value_binding(to, *window)];
                    let bindings = keys.into_iter().chain([counts, totals]);
                    let bindings = bindings.chain(values.into_iter().flatten()).chain(counted).collect();
                    let grid = Grid::fold(blocks(part));
                    self.program.dispatch(scatter, &params(part, first_block, window), bindings, grid);
                }
                first_block += blocks(part);
            }
        }
        Ok(())
    }

    /// Counts of all passes at once, then one kernel a pass.
    fn onesweep(&mut self, moves: &[(SortItems, SortItems)]) {
        let tile = self.policy.sweep_tile;
        let tiles = sweep_tiles(self.n, tile);
        let words = tiles * RADIX;
        let globals = self.program.scratch(4 * (HEAD + u64::from(self.passes) * RADIX));
        let posts = [0, 1].map(|_| self.program.scratch(4 * words));
        let totals = self.program.scratch(4 * u64::from(self.passes));
        let all = BoundChunk { first: 0, count: self.n };
        let spec = self.spec.clone();
        let (passes, walkers) = (self.passes, self.policy.walkers);
        let walker = |program: &mut Program, entry, spec: Spec| {
            let spec = spec.constant("PASSES", passes).constant("WORKGROUP_SIZE", walkers);
            program.kernel(Kernel::library("primitives/sort_histogram", entry, spec))
        };
        let clear_spec = Spec::new().flag("CLEAR", true).flag("COUNTED", self.form.counted);
        let clear = walker(&mut self.program, "sort_histogram_clear", clear_spec);
        let count = walker(&mut self.program, "sort_histogram_count", spec.clone());
        let scan = self.scan_kernel();
        let mut sweep_spec = spec
            .constant("ROWS", sweep_rows(self.profile, tile.0))
            .slot("ranks", Fragment::Library("primitives/sort_ballots"))
            .flag("LARGE_SUBGROUPS", self.profile.subgroup_sizes.1 > 32);
        if self.leave_out > 0 {
            sweep_spec = sweep_spec.flag("LEAVE_OUT", true).constant("ONE_IN", self.leave_out);
        }
        let sweep = self.tile_kernel("primitives/sort_onesweep", "sort_onesweep", tile, sweep_spec);
        let params = |workgroups: u64| HistogramParams {
            n: self.n as u32,
            workgroups: workgroups as u32,
            words: words as u32,
            begin_bit: self.bits.start,
            end_bit: self.bits.end,
            digit_bits: self.digit_bits,
        };
        let share = |items: u64| {
            let (walkers, most) = (u64::from(walkers), self.policy.counters);
            items.div_ceil(8 * walkers).min(most).max(items.div_ceil(MOST_STEPS * walkers))
        };
        let (clearers, counters) = (share(words), share(self.n));
        let bindings = [globals, posts[0]].into_iter().chain(self.count_binding()).collect();
        self.program.dispatch(clear, &params(clearers), bindings, Grid::fold(clearers));
        let bindings = vec![globals, self.key_binding(moves[0].0, all)];
        self.program.dispatch(count, &params(counters), bindings, Grid::fold(counters));
        let rows = SortScanParams { first: HEAD as u32, len: RADIX as u32, rows: self.passes };
        self.program.dispatch(scan, &rows, vec![globals, totals], Grid::fold(u64::from(passes)));
        // Tickets number the tiles, so the grid may have any shape of enough workgroups.
        let lines = tiles.div_ceil(u64::from(self.profile.limits.max_workgroups_per_dimension).min(65535));
        let grid = Grid::Direct([tiles.div_ceil(lines) as u32, lines as u32, 1]);
        for (pass, &(from, to)) in (0..).zip(moves) {
            let Digit { shift, mask } = self.digit(pass);
            let [mine, next] = if pass % 2 == 0 { posts } else { [posts[1], posts[0]] };
            let keys = [self.key_binding(from, all), self.key_binding(to, all)];
            let values = [self.value_binding(from, all), self.value_binding(to, all)];
            let bindings = keys.into_iter().chain([globals, mine, next]).chain(values.into_iter().flatten());
            let params = SweepParams { pass_index: pass, shift, mask, items: tile.1 };
            self.program.dispatch(sweep, &params, bindings.collect(), grid);
        }
    }
}

/// How `sort_key.wgsl` makes an unsigned number of a key.
pub(super) fn key_spec(dtype: DType, descending: bool) -> Result<Spec> {
    let all = if descending { u32::MAX } else { 0 };
    // A padding key has the largest number there is; of floats, it is a NaN.
    let spec = |flip: u32, pad: u32| Spec::new().constant("FLIP", flip).constant("PAD", pad);
    Ok(match dtype {
        DType::U32 => spec(all, !all),
        DType::I32 => spec(all ^ (1 << 31), !all ^ (1 << 31)),
        DType::F32 => spec(all, 0x7fff_ffff).flag("FLOAT", true),
        DType::U64 => spec(all, !all).flag("WIDE", true),
        _ => {
            return Err(err!(
                Unsupported,
                "sort: keys of {dtype} are not sorted; convert them to u32, i32, f32 or u64"
            ));
        }
    })
}

pub(super) const INFO: Operation = Operation {
    name: "sort",
    about: "keys in order, stable, and values with their keys",
    inputs: &[Input::new("keys", "(n)"), Input::optional("values", "u32 (n)")],
    types: &WORDS,
    options: &[
        Setting::flag("descending"),
        BITS,
        Setting::flag("in-place"),
        Setting::array("count", "u32 (1)"),
        TILE,
    ],
    make: Some(make),
    variants: RadixSort::variants,
    samples,
    comparison: Some(Comparison::Sums),
    settles: true,
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

const BITS: Setting = Setting::text("bits", "BEGIN,END", "");
const TILE: Setting = Setting::text("tile", "INVOCATIONS,KEYS", "");

fn make(asked: &mut Asked<'_>) -> Result<program::Form> {
    let settings = asked.settings();
    let (keys, [n]) = asked.array("keys")?;
    let mut op = RadixSort::new(n).descending(settings.has("descending")).variant(asked.variant());
    if let Some([begin, end]) = settings.given_numbers(&BITS)? {
        op = op.bits(begin..end);
    }
    if let Some([threads, items]) = settings.given_numbers(&TILE)? {
        op = op.tile(threads, items);
    }
    let dtype = keys.dtype();
    let mut sorted = vec![keys];
    if asked.has_more() {
        sorted.push(asked.of("values", &[n], DType::U32)?);
        op = op.with_values();
    }
    let count = asked.named_of("count", &[1], DType::U32)?.map(Role::Given);
    op = if count.is_some() { op.counted() } else { op };
    let operands = if settings.has("in-place") {
        op = op.in_place();
        sorted.into_iter().map(Role::Updated).chain(count).collect()
    } else {
        let outputs: Vec<_> = sorted.iter().map(|_| Role::Result(vec![n])).collect();
        sorted.into_iter().map(Role::Given).chain(count).chain(outputs).collect()
    };
    by_type!(asked, dtype, [f32, i32, u32], T => Ok(program::Form::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let mut programs = Vec::new();
    for descending in [false, true] {
        let keys = || RadixSort::new(10_001).descending(descending).variant(variant);
        let pairs = || keys().with_values();
        programs.push(Op::<u32>::lower(&keys(), profile)?);
        programs.push(Op::<i32>::lower(&pairs(), profile)?);
        programs.push(Op::<f32>::lower(&keys().in_place(), profile)?);
        programs.push(Op::<f32>::lower(&pairs(), profile)?);
        programs.push(Op::<u64>::lower(&keys(), profile)?);
        programs.push(Op::<u64>::lower(&pairs(), profile)?);
    }
    let keys = || RadixSort::new(1000).variant(variant);
    programs.push(Op::<u32>::lower(&keys().counted(), profile)?);
    programs.push(Op::<u32>::lower(&keys().with_values().in_place().counted(), profile)?);
    programs.push(Op::<u32>::lower(&keys().leave_out_posts(2), profile)?);
    // Subgroups above 32 lanes, as some cards have.
    let large = DeviceProfile { subgroup_sizes: (32, 64), ..profile.clone() };
    programs.push(Op::<u32>::lower(&keys(), &large)?);
    Ok(programs)
}
