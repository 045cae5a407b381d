use super::scan_offsets::mark_heads;
use super::sort::{RadixSort, key_spec};
use super::values::Values;
use super::{Scan, Sum, WORDS};
use crate::program::prelude::*;

/// Sorts the keys of each segment, stably: `keys_out[b..e]` holds `keys[b..e]` in order, where `b` and `e` are
/// neighbours among the offsets. Values move with their keys.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let keys = gpu.upload(&[3.0f32, -1.0, 2.0, 9.0, 8.0])?;
/// let (offsets, keys_out) = (gpu.upload(&[0u32, 3, 3, 5])?, gpu.alloc::<f32>(5)?); // 3 segments, one empty
/// let sort = SegmentedSort::new(5, 3).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// sort.record(&mut rec, &keys, &offsets, &keys_out)?;
/// rec.submit()?;
/// assert_eq!(keys_out.read()?, [-1.0, 2.0, 3.0, 8.0, 9.0]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `keys` and `keys_out` have `n` elements, `offsets` (u32) has one more than there are segments, in ascending order;
/// [`with_values`](Self::with_values) adds `values` and `values_out` of `n` u32 each. Segments may be empty or as long
/// as `n`, and `n` may be 0. Keys before the first offset, and from the last one on, are sorted as segments of their
/// own. Outputs must be other wgpu buffers than inputs. With [`counted`](Self::counted) the device holds the number of
/// keys; an offset from it on begins nothing.
///
/// Offsets may be in any order and may leave the array: each offset below `n` begins a segment, and others are skipped.
/// The output is always a permutation of the input.
///
/// # Types and order
/// Keys of f32, i32 and u32, in the order of [`RadixSort`]: equal keys keep their order, ascending and
/// [`descending`](Self::descending), and every NaN comes last in its segment either way.
///
/// # Precision and determinism
/// Keys and values are moved, never computed with. The same input gives the same bits on every device.
///
/// # Cost
/// Keys and values are read and written once where segments are far shorter than 1,920 keys, the size of a tile. The
/// device finds the segments of each tile and sorts them in workgroup memory. Without values, lanes of a subgroup sort
/// a segment of i32 or u32 in registers, of up to 128 keys or 8 a lane. A segment in two tiles is read
/// and written once more, to merge its parts; beside it, only the offsets and `n / 8` bytes move. The keys of longer
/// segments are gathered, sorted with their positions, sorted stably by segment (one pass for each 8 bits of the number
/// of long segments), and moved. If no segment is long, the dispatches of these sorts remain, about 20, most without
/// workgroups. Scratch: 16 bytes a key, and what the sorts need; `n / 8` bytes where one tile holds all keys.
///
/// # Variants
/// Those of [`RadixSort`], chosen as there; they sort the long segments.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
/// - [`Unsupported`](ErrorKind::Unsupported): a variant that the device cannot run.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest binding.
///
/// # Algorithm
/// Merge sort of short segments: S. Baxter, *Modern GPU* (2013), and O. Green, R. McColl and D. Bader, *GPU merge path*
/// (2012); `shaders/primitives/segmented_sort_tiles.wgsl` and `segmented_sort_seams.wgsl`. Long ones:
/// `segmented_sort_long.wgsl`, [`Scan`] and [`RadixSort`]. By a subgroup: K. Batcher, *Sorting networks and their
/// applications* (1968).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentedSort {
    n: usize,
    segments: usize,
    descending: bool,
    values: bool,
    counted: bool,
    variant: String,
}

kernel_params! { struct SegmentTilesParams { n: u32 } }
kernel_params! { struct SegmentSeamsParams { n: u32, above: u32 } }
kernel_params! { struct LongSegmentsParams { n: u32, tiles: u32 } }
kernel_params! { struct SegmentedSortLaunchParams { tiles: u32, dispatches: u32 } }

/// Keys of a tile: a multiple of 32, so that the heads of a tile are whole words.
const TILE: usize = 1920;
/// Threads that merge the two parts of a segment, the most keys of each, and the seams that they visit. Few segments
/// need the last: 32,000 workgroups without work take 50 us on an H100 (Vulkan, driver 580.159.04).
const SEAMS: [(u32, u32, u32); 2] = [(32, 14, 8), (256, 15, 64)];
const _: () = assert!((SEAMS[1].0 * SEAMS[1].1) as usize >= 2 * TILE && TILE.is_multiple_of(32));
/// Average lengths for which a tile lists the chunks of its segments. Of 2^26 u32 on an H100 (Vulkan, driver
/// 580.159.04), with a list and without: segments of 10 in 366 and 357 us, of 1,000 in 1,465 and 1,492 us.
const LISTED: std::ops::RangeInclusive<usize> = 32..=TILE;
/// Keys of a lane that merges the parts of a segment with its subgroup: the network of `segmented_sort_seams`.
const JOINED: u32 = 16;
/// Average length up to which 8 lanes sort a segment, keys are loaded ahead, a thread lists the segments of a word of
/// heads, and subgroups merge the parts of segments in two tiles. 2^26 u32 on an H100 (Vulkan, driver 580.159.04):
/// segments of 100 in 422 us, of 40 in 417; with lists by the threads that own the places and a bitonic network alone,
/// 503 and 473. Before that, 16 lanes a segment took 17 us more, 4 lanes 106, and segments of 200 779 us by all this,
/// and 659 without.
const SHORT: usize = 112;
/// Positions of a workgroup that finds their segments.
const OWNERS: u64 = 16 * 256;

impl SegmentedSort {
    /// Sorts the segments of `n` keys.
    pub fn new(n: usize, segments: usize) -> Self {
        Self { n, segments, descending: false, values: false, counted: false, variant: "auto".into() }
    }

    /// Moves a u32 value with each key: operands `values` and `values_out`, which plans take by `with_values`.
    #[must_use]
    pub fn with_values(mut self) -> Self {
        self.values = true;
        self
    }

    /// Sorts the largest first. The default is the smallest first.
    #[must_use]
    pub fn descending(mut self) -> Self {
        self.descending = true;
        self
    }

    counted!(counted, "keys", "There may be anything behind it in the outputs.");

    variants!(variant);

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let Self { n, .. } = *self;
        let by_key = RadixSort::new(n).with_values().counted().when(self.descending, RadixSort::descending);
        let by_key = by_key.variant(&self.variant).lower_as(dtype, profile).map_err(|e| e.context(INFO.name))?;
        let mut program = Program::new(INFO.name, by_key.decision.clone());
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        program.operands.push(operand("keys", dtype, n, Access::Read));
        program.operands.push(operand("offsets", DType::U32, self.segments.saturating_add(1), Access::Read));
        if self.values {
            program.operands.push(operand("values", DType::U32, n, Access::Read));
        }
        program.operands.extend(self.counted.then(|| operand("length", DType::U32, 1, Access::Read)));
        program.operands.push(operand("keys_out", dtype, n, Access::Write));
        if self.values {
            program.operands.push(operand("values_out", DType::U32, n, Access::Write));
        }
        profile.check_bindings(INFO.name, &program.operands, "sort some segments at a time")?;
        program.cost = Cost::of(0.0, &program.operands);
        let count = index_u32(INFO.name, "n", n)?;
        if count == 0 {
            return Ok(program);
        }
        let tiles = n.div_ceil(TILE);
        let heads = mark_heads(&mut program, n, profile)?;
        let ends = program.scratch(4 * tiles as u64);
        let bound: Vec<_> = (0..program.operands.len()).map(|i| Binding::operand(i, &program.operands)).collect();
        let (inputs, outputs) = bound.split_at(bound.len() - 1 - usize::from(self.values));
        let length = self.counted.then(|| inputs[inputs.len() - 1]);
        let inputs = [&inputs[..1], &inputs[2..2 + usize::from(self.values)]].concat();
        let spec = key_spec(dtype, self.descending)?.flag("VALUES", self.values);
        let average = n / self.segments.max(1);
        let listed = LISTED.contains(&average);
        let short = listed && average <= SHORT;
        let mut tiled = spec.clone().flag("LISTED", listed).flag("SHORT", short);
        let (lanes, most) = profile.subgroup_sizes;
        // Equal keys are the same, so networks that are not stable will do.
        let networks = profile.features.subgroups && lanes == most && !self.values && !dtype.is_float();
        if listed && networks {
            tiled = tiled.flag("NETWORK", true);
            tiled = if short {
                tiled.constant("LOG_LANES", lanes.ilog2().min(3)).constant("FEWEST", 3).constant("WIDTHS", 5)
            } else {
                tiled.constant("LOG_LANES", lanes.ilog2())
            };
        }
        let pairs: Vec<_> = inputs.iter().zip(outputs).flat_map(|(input, output)| [*input, *output]).collect();
        let bindings = [&[heads, ends], &pairs[..]].concat();
        let kernel = Kernel::of_file("primitives/segmented_sort_tiles", tiled);
        let params = SegmentTilesParams { n: count };
        add_step(&mut program, kernel, &params, (bindings, length), Grid::fold(tiles as u64));
        if tiles == 1 {
            return Ok(program);
        }
        // Few threads merge a short segment, a workgroup a longer one.
        let mut above = 0;
        for (i, (threads, items, seams)) in SEAMS.into_iter().enumerate() {
            let mut spec = spec.clone().constant("SEAMS", seams);
            let (threads, items) = if i == 0 && networks && short {
                spec = spec.flag("NETWORK", true).constant("LOG_LANES", lanes.ilog2());
                (lanes, JOINED)
            } else {
                (threads, items)
            };
            let spec = spec.constant("LANES", threads).constant("ITEMS", items);
            let bindings = [&[ends], outputs].concat();
            let grid = Grid::fold((tiles as u64 - 1).div_ceil(seams.into()));
            let params = SegmentSeamsParams { n: count, above };
            let kernel = Kernel::of_file("primitives/segmented_sort_seams", spec);
            add_step(&mut program, kernel, &params, (bindings, length), grid);
            above = threads * items;
        }
        self.sort_long(program, profile, by_key, (ends, length), pairs)
    }

    /// Sorts the segments that hold a whole tile and more. `pairs` are each input and its output.
    fn sort_long(
        &self, mut program: Program, profile: &DeviceProfile, by_key: Program,
        (ends, there): (Binding, Option<Binding>), pairs: Vec<Binding>,
    ) -> Result<Program> {
        let Self { n, .. } = *self;
        let tiles = n.div_ceil(TILE);
        let params = LongSegmentsParams { n: n as u32, tiles: tiles as u32 };
        let kernel = |step, flag| {
            let spec = Spec::new().flag(flag, true).flag("VALUES", self.values && flag == "MOVE");
            Kernel::library("primitives/segmented_sort_long", step, spec)
        };
        let scans = 2 * (tiles + 1);
        let [counts, sums] = [0, 1].map(|_| program.scratch(4 * scans as u64));
        let length = program.scratch(4);
        let [keys, positions, sorted, moved] = [0, 1, 2, 3].map(|_| program.scratch(4 * n as u64));
        let mut shared = Vec::new();

        let count = kernel("segmented_sort_long_count", "COUNT");
        let grid = Grid::fold((tiles as u64 + 1).div_ceil(256));
        add_step(&mut program, count, &params, (vec![ends, counts], there), grid);
        let scan = Op::<u32>::lower(&Scan::new(Sum, scans).exclusive(), profile)?;
        program.append_at(scan, &[(counts.resource, 0), (sums.resource, 0)], &mut shared);

        // A long segment begins in a tile of its own, at an offset of its own or at 0.
        let most = tiles.min(self.segments.saturating_add(2));
        let bits = usize::BITS - (most - 1).leading_zeros();
        let by_segment = RadixSort::new(n).bits(0..bits).with_values().counted().variant(&self.variant);
        let by_segment = Op::<u32>::lower(&by_segment, profile)?;
        let mut launches = Launches::default();
        let each_tile = launches.add(Grid::fold(tiles as u64), 0);
        let each_owner = launches.add(Grid::fold((n as u64).div_ceil(OWNERS)), OWNERS as u32);
        let [by_key, by_segment] = [by_key, by_segment].map(|sort| launches.of_sort(sort, n));
        let launch = program.kernel(Kernel::of_file("primitives/segmented_sort_launch", Spec::new()));
        let table = program.constant(bytemuck::cast_slice(&launches.0).to_vec());
        let workgroups = program.scratch(12 * launches.0.len() as u64);
        let all = SegmentedSortLaunchParams { tiles: tiles as u32, dispatches: launches.0.len() as u32 };
        program.dispatch(launch, &all, vec![sums, table, length, workgroups], Grid::fold(1));
        let launched = |place: u64| Grid::Indirect { resource: workgroups.resource, offset: 12 * place };

        let take = kernel("segmented_sort_long_take", "TAKE");
        let bindings = vec![ends, sums, pairs[0], keys, positions];
        add_step(&mut program, take, &params, (bindings, there), launched(each_tile));
        let at = |bindings: [Binding; 5]| bindings.map(|binding| (binding.resource, 0));
        let mut append = |program: &mut Program, (sort, places): (Program, Vec<Option<u64>>), operands| {
            let first = program.dispatches.len();
            program.append_at(sort, &at(operands), &mut shared);
            for (dispatch, place) in program.dispatches[first..].iter_mut().zip(places) {
                dispatch.grid = place.map_or(dispatch.grid, launched);
            }
        };
        append(&mut program, by_key, [keys, positions, length, sorted, moved]);

        // The keys have been used: their places hold the segments of the sorted positions.
        let own = kernel("segmented_sort_long_owners", "OWN");
        add_step(&mut program, own, &params, (vec![ends, sums, moved, keys], None), launched(each_owner));
        append(&mut program, by_segment, [keys, moved, length, sorted, positions]);

        let into = kernel("segmented_sort_long_move", "MOVE");
        let bindings = [ends, sums, positions].into_iter().chain(pairs).collect();
        add_step(&mut program, into, &params, (bindings, there), launched(each_tile));
        Ok(program)
    }
}

/// Adds a dispatch; the number of keys, if the device counts them, is the last binding.
fn add_step<P: KernelParams>(
    program: &mut Program, mut kernel: Kernel, params: &P, (mut bindings, length): (Vec<Binding>, Option<Binding>),
    grid: Grid,
) {
    kernel.spec = limited(kernel.spec, length.is_some(), bindings.len() as u32 + 1);
    bindings.extend(length);
    let kernel = program.kernel(kernel);
    program.dispatch(kernel, params, bindings, grid);
}

/// The workgroups of dispatches that the device launches: those of the whole array, and the keys of each, or 0 if any
/// number of keys needs all workgroups.
#[derive(Default)]
struct Launches(Vec<[u32; 2]>);

impl Launches {
    /// Adds a dispatch with this grid and gives its place.
    fn add(&mut self, grid: Grid, each: u32) -> u64 {
        let launch = [workgroups_of(grid), each];
        let place = self.0.iter().position(|known| *known == launch);
        place.unwrap_or_else(|| {
            self.0.push(launch);
            self.0.len() - 1
        }) as u64
    }

    /// Adds the dispatches of a sort of `n` keys, and gives their places. If there are keys, the passes of `onesweep`
    /// take as many workgroups as these need, since tickets number their tiles, and others take all. A sort that
    /// launches dispatches by its own count does so here, too.
    fn of_sort(&mut self, sort: Program, n: usize) -> (Program, Vec<Option<u64>>) {
        let counts = sort.dispatches.iter().any(|dispatch| matches!(dispatch.grid, Grid::Indirect { .. }));
        let mut places = vec![None; sort.dispatches.len()];
        for (dispatch, place) in sort.dispatches.iter().zip(&mut places).filter(|_| !counts) {
            let workgroups = workgroups_of(dispatch.grid);
            if sort.kernels[dispatch.kernel].entry == "sort_onesweep" {
                *place = Some(self.add(dispatch.grid, (n as u32).div_ceil(workgroups.max(1))));
            } else if dispatch.grid == Grid::fold(workgroups.into()) {
                *place = Some(self.add(dispatch.grid, 0));
            }
        }
        (sort, places)
    }
}

/// The workgroups of a dispatch that the host launches.
fn workgroups_of(grid: Grid) -> u32 {
    if let Grid::Direct([x, y, z]) = grid { x.saturating_mul(y).saturating_mul(z) } else { 0 }
}

const VARIANTS: &[Variant] = super::sort::VARIANTS;

operands! {
    impl[T: Element,] SegmentedSort, T {
        fn record(keys: T, offsets: u32, keys_out: T);
        /// Takes values that move with the keys.
        optional with_values(values: u32, values_out: u32);
        /// Takes the number of keys from the device.
        optional with_length(length: u32);
    }
}

lowered_as!(SegmentedSort: f32, i32, u32);

pub(super) const INFO: Operation = Operation {
    name: "segmented-sort",
    about: "the keys of each segment in order, stable, and values with their keys",
    inputs: &[
        Input::new("keys", "(n)"),
        Input::new("offsets", "u32 (s+1)"),
        Input::optional("values", "u32, i32, f32 (n)"),
    ],
    outputs: &[("keys", "(n)"), ("[values]", "(n)")],
    types: &WORDS,
    options: &[Setting::flag("descending"), LENGTH],
    domains: &[("keys", Domain::Runs), ("values", Domain::Bits)],
    make: Some(make),
    variants: SegmentedSort::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[100], options: &[] },
    ..Operation::UNDECLARED
};

pub(super) fn asked_offsets(asked: &mut Asked<'_>, n: usize) -> Result<(Role, usize)> {
    let offsets = asked.any_indices("offsets", &[n / 8 + 1], n.saturating_add(1))?;
    let [len] = asked.dims("offsets", &offsets)?;
    Ok((Role::Given(offsets), segments_of(asked, len)?))
}

pub(super) fn segments_of(asked: &Asked<'_>, offsets: usize) -> Result<usize> {
    offsets.checked_sub(1).ok_or_else(|| {
        err!(Shape, "{}: offsets has no element; it must have one more than there are segments", asked.name())
    })
}

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (keys, [n]) = asked.array("keys")?;
    let (offsets, segments) = asked_offsets(asked, n)?;
    let descending = asked.settings().has("descending");
    let op = SegmentedSort::new(n, segments).when(descending, SegmentedSort::descending);
    let op = op.variant(asked.variant());
    let dtype = keys.dtype();
    let values = Values::asked(asked, n, false)?;
    let op = op.when(values.is_some(), SegmentedSort::with_values);
    let (length, output) = asked.length(1, vec![n])?;
    let op = op.when(length.is_some(), SegmentedSort::counted);
    let given = values.iter().map(|values| Role::Given(values.array.clone())).chain(length);
    let outputs = Values::outputs(values.as_ref(), output);
    let operands = [Role::Given(keys), offsets].into_iter().chain(given).chain(outputs).collect();
    by_type!(asked, dtype, [f32, i32, u32], T => {
        Ok(Values::typed(values.as_ref(), 2, OpCall::new::<T>(op, operands)))
    })
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = SegmentedSort::new(10_001, 90).variant(variant);
    Ok(vec![
        op.clone().with_values().lower_as(DType::F32, profile)?,
        op.clone().descending().lower_as(DType::I32, profile)?,
        op.clone().counted().lower_as(DType::U32, profile)?,
        op.lower_as(DType::U32, profile)?,
        SegmentedSort::new(900, 9).variant(variant).lower_as(DType::F32, profile)?,
        SegmentedSort::new(900, 90).variant(variant).lower_as(DType::U32, profile)?,
    ])
}
