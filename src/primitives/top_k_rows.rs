use super::segmented_sort::segments_of;
use super::select_columns::PositionsOf;
use super::sort::{RadixSort, key_spec};
use super::top_k::{asked_payload, with_payload};
use super::{DTYPES, SegmentedSort};
use crate::elementwise::{Broadcast, Transform, TransformFn};
use crate::program::prelude::*;

/// Finds the `k` largest (or smallest) elements of each row, in order: `values[r, i]` is the `i`-th largest element of
/// row `r`, and `indices[r, i]` its position in the row.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let x = gpu.upload(&[3.0f32, 9.0, -1.0, 7.0, 5.0, 5.0])?; // 2 rows of 3
/// let (values, indices) = (gpu.alloc::<f32>(4)?, gpu.alloc::<u32>(4)?);
/// let top = TopKRows::new([2, 3], 2).plan::<f32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// top.record(&mut rec, &x, &values, &indices)?;
/// rec.submit()?;
/// assert_eq!((values.read()?, indices.read()?), (vec![9.0, 3.0, 7.0, 5.0], vec![1, 0, 0, 1]));
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input` is rows x n, row-major; `values` and `indices` (u32) are rows x k, with `k` from 1 to `n`. The number of
/// rows may be 0. The outputs must be other wgpu buffers than the input and each other.
/// [`with_payload`](TopKRows::with_payload) copies rows of another array along, one for each element. With
/// [`counted`](Self::counted) an operand `length` of one u32 holds the number of rows.
///
/// [`segments`](TopKRows::segments) takes the best of the elements between offsets instead of those of rows.
///
/// # Types and order
/// f32, f16, i32 and u32, in the order of [`TopK`](crate::TopK): largest first, or [`smallest`](TopKRows::smallest)
/// first; NaN is the worst either way, and -0 is below +0. Of equal elements, and of NaNs, the one with the lower index
/// comes first.
///
/// # Precision and determinism
/// Elements are moved, never computed with: NaN keeps its bits. f16 is compared as f32. The same input gives the same
/// bits on every device.
///
/// # Cost
/// `filter` reads the input once, in one dispatch without scratch. A row is the work of one workgroup, so few long rows
/// leave a card idle: [`TopK`](crate::TopK) is faster for one of them. Rows made to put the best elements last in every
/// eighth take a selection in workgroup memory for each few hundred elements. `sort` sorts all elements twice, with 12
/// bytes of scratch an element and those of [`RadixSort`], segments by
/// [`SegmentedSort`]. It sorts all rows, whatever the length on the device.
///
/// # Variants
/// `filter` and `sort`; `auto` (the default) takes `filter` where it can: it holds at least 2 k candidates in workgroup
/// memory, which allows `k` up to 512 on every device, 2048 with 48 KiB.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): `k` is 0 or above `n`, or an unknown variant.
/// - [`Unsupported`](ErrorKind::Unsupported): `filter` by name with a larger `k`, or with rows so long that the
///   device would end its loops; segments with a length from the device.
/// - [`TooLarge`](ErrorKind::TooLarge): a row above the largest binding, or for `sort` the input.
///
/// # Algorithm
/// `filter` holds what may be among the k best and forgets the rest by a bound that sinks:
/// `shaders/primitives/top_k_rows.wgsl`. `sort` sorts by element, then stably by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopKRows {
    rows: usize,
    n: usize,
    k: usize,
    smallest: bool,
    /// `n` elements in segments between offsets, as many as rows.
    segmented: bool,
    payload: Option<(DType, usize)>,
    counted: bool,
    variant: String,
}

const VARIANTS: &[Variant] = &[
    Variant::portable("filter", "a workgroup reads a row once and holds what may be among the k best"),
    Variant::portable("sort", "sorts all elements, then by row"),
];

/// Bytes of workgroup memory beside the candidates.
const REST: u32 = 64;
/// Maximum of candidates that a workgroup holds.
const MAX_CAPACITY: u32 = 4096;
/// Candidates from which on bisection finds the best faster than a sort. Of 4,096 rows of 50,257 f32 on an H100
/// (Vulkan, driver 580.159.04), by bisection and by sorts: k 50 in 488 and 449 us (256 candidates), 128 in 550 and 562,
/// 1,000 in 2,382 and 5,801 us. Slow compilers get the sort: SwiftShader needs more than 24 GB for
/// the text of bisection.
const SELECTED: u32 = 512;

kernel_params! {
    struct TopKRowsParams {
        n: u32, k: u32, rows: u32, before: u32, values_before: u32, indices_before: u32, steps: u32,
        first: u32,
    }
}
kernel_params! { struct TopKRowsPickParams { n: u32, k: u32, count: u32 } }
kernel_params! { struct TopKRowsOwnersParams { n: u32, count: u32 } }

struct RowFilter {
    threads: u32,
    /// Elements that a thread reads in a step.
    items: u32,
    /// Candidates that a workgroup holds.
    capacity: u32,
}

impl RowFilter {
    /// Fails if the device cannot hold enough candidates, or would end the loops.
    fn new(n: usize, k: usize, profile: &DeviceProfile) -> Result<Self> {
        // On processors each thread pays for a barrier, and long kernels compile slowly.
        let (threads, items) = if profile.quirks.serial_workgroups { (64, 4) } else { (256, 8) };
        let room = (profile.limits.max_workgroup_bytes.saturating_sub(REST) / 8).max(1);
        let most = (1 << room.ilog2()).min(MAX_CAPACITY);
        if k as u64 > u64::from(most / 2) {
            return Err(err!(
                Unsupported,
                "top-k-rows: k is {k}; `filter` takes up to {} on {}; use `sort`",
                most / 2,
                profile.name
            ));
        }
        let capacity = (4 * k as u32).next_power_of_two().clamp(256, most);
        let rounds = Self { threads, items, capacity }.rounds(n as u64, k as u64);
        if !profile.runs_rounds(rounds) {
            return Err(err!(
                Unsupported,
                "top-k-rows: the best {k} of rows of {n} may take {rounds} rounds of loops; {} ends them after {}; use \
                 `sort`",
                profile.name,
                profile.max_rounds()
            ));
        }
        Ok(Self { threads, items, capacity })
    }

    fn steps(&self, n: u64) -> u64 {
        n.div_ceil(u64::from(self.threads * self.items))
    }

    /// Rounds of all loops of a thread in the worst case.
    fn rounds(&self, n: u64, k: u64) -> u64 {
        let sort = |size: u32| {
            let bits = u64::from(size.ilog2());
            bits + bits * (bits + 1) / 2 * (1 + u64::from((size / 2).div_ceil(self.threads)))
        };
        // Each sort of full candidates drops all but k.
        let sorts = n / (u64::from(self.capacity) - k) + 2;
        let fill = u64::from(self.capacity.div_ceil(self.threads)) + u64::from(self.capacity.ilog2());
        sorts * (1 + sort(self.capacity.max(self.threads))) + 2 * self.steps(n) + 2 * fill
    }
}

impl TopKRows {
    /// Finds the `k` largest elements of each of `rows` rows of `n` elements.
    pub fn new([rows, n]: [usize; 2], k: usize) -> Self {
        let (smallest, segmented, counted) = (false, false, false);
        Self { rows, n, k, smallest, segmented, payload: None, counted, variant: "auto".into() }
    }

    /// Finds the `k` largest elements of each of `segments` segments of `n` elements. Plans take the `offsets`, one
    /// more u32 than segments, in ascending order, and are recorded by `record_segments`. `indices` are positions in
    /// the input. Behind a segment of fewer than `k` elements, `values` are 0 and `indices` `u32::MAX`. Offsets above
    /// `n` count as `n`. If offsets decrease, the results of all segments may be those of any elements.
    ///
    /// ```
    /// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
    /// use tilework::prelude::*;
    ///
    /// let gpu = Gpu::new()?;
    /// let (x, offsets) = (gpu.upload(&[3u32, 9, 1, 7, 5])?, gpu.upload(&[0u32, 4, 5])?);
    /// let (values, indices) = (gpu.alloc::<u32>(4)?, gpu.alloc::<u32>(4)?);
    /// let top = TopKRows::segments(5, 2, 2).plan::<u32>(&gpu)?;
    /// let mut rec = gpu.recorder();
    /// top.record_segments(&mut rec, &x, &offsets, &values, &indices)?;
    /// rec.submit()?;
    /// assert_eq!((values.read()?, indices.read()?), (vec![9, 7, 5, 0], vec![1, 3, 4, u32::MAX]));
    /// # Ok::<(), tilework::Error>(())
    /// ```
    pub fn segments(n: usize, segments: usize, k: usize) -> Self {
        Self { segmented: true, ..Self::new([segments, n], k) }
    }

    /// Copies the rows of the best from an operand `payload`, of a row of `width` elements of `dtype` for each element,
    /// to `payload_out`. Plans take both by `with_payload`. Zeros stand behind short segments.
    #[must_use]
    pub fn with_payload(mut self, dtype: DType, width: usize) -> Self {
        self.payload = Some((dtype, width));
        self
    }

    /// Finds the smallest elements. The default is the largest.
    #[must_use]
    pub fn smallest(mut self) -> Self {
        self.smallest = true;
        self
    }

    counted!(
        counted,
        "rows",
        "Here `n` is the number of rows; results behind as many are not written. Segments do not take it."
    );
    variants!(variant);

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let Self { rows, n, k, segmented, .. } = *self;
        let best = self.lower_best(dtype, profile)?;
        let Some(payload) = self.payload else { return Ok(best) };
        let (all, positions_of) = match segmented {
            true => (n, PositionsOf::Padded),
            false => (elements(INFO.name, "input", &[rows, n])?, PositionsOf::Rows { best: k, apart: n }),
        };
        with_payload(best, payload, all, positions_of, profile)
    }

    fn lower_best(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let Self { rows, n, k, segmented, .. } = *self;
        if dtype == DType::F16 {
            return self.lower_halves(profile);
        }
        if segmented && self.counted {
            return Err(err!(
                Unsupported,
                "top-k-rows: {rows} segments with a length from the device; it counts rows; give the segments behind the \
                 last one its end as offsets"
            ));
        }
        if segmented && k == 0 {
            return Err(err!(InvalidArgument, "top-k-rows: k is 0; it must be at least 1"));
        }
        if !segmented && (k == 0 || k > n) {
            return Err(err!(InvalidArgument, "top-k-rows: k is {k} and n is {n}; k must be from 1 to n"));
        }
        index_u32(INFO.name, "n", n)?;
        let filter = RowFilter::new(n, k, profile);
        let (variant, decision) = choose(INFO.name, &self.variant, VARIANTS, profile, || match &filter {
            Ok(_) => ("filter", "reads once".into()),
            Err(_) => ("sort", "a workgroup cannot hold enough candidates here".into()),
        })?;
        let mut program = Program::new(INFO.name, decision);
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        let best = elements(INFO.name, "values", &[rows, k])?;
        let all = if segmented { n } else { elements(INFO.name, "input", &[rows, n])? };
        program.operands.push(operand("input", dtype, all, Access::Read));
        if segmented {
            program.operands.push(operand("offsets", DType::U32, rows.saturating_add(1), Access::Read));
        }
        program.operands.extend(self.counted.then(|| operand(LENGTH.name, DType::U32, 1, Access::Read)));
        program.operands.push(operand("values", dtype, best, Access::Write));
        program.operands.push(operand("indices", DType::U32, best, Access::Write));
        program.cost = Cost::of(all as f64, &program.operands);
        let order = key_spec(dtype, !self.smallest)?;
        if segmented {
            profile.check_bindings(INFO.name, &program.operands, "take fewer segments at a time")?;
            index_u32(INFO.name, "segments x k", best)?;
        }
        if best == 0 {
            return Ok(program);
        }
        if variant.name == "filter" {
            let filter = filter?;
            profile.check_buffers(INFO.name, &program.operands, "take fewer rows at a time")?;
            let what = format_args!("a row of {n} elements");
            profile.check_row(INFO.name, what, 4 * n as u64, "find the k best of parts, then of those")?;
            self.filter(&mut program, &filter, order, profile);
        } else {
            profile.check_bindings(INFO.name, &program.operands, "take fewer rows at a time")?;
            self.sort(&mut program, dtype, profile)?;
        }
        Ok(program)
    }

    /// The operands input, values and indices, and the offsets or the length.
    fn bound(&self, program: &Program) -> ([Binding; 3], Option<Binding>) {
        let of = |i| Binding::operand(i, &program.operands);
        if self.segmented || self.counted {
            ([of(0), of(2), of(3)], Some(of(1)))
        } else {
            ([of(0), of(1), of(2)], None)
        }
    }

    /// A kernel that reads the offsets or the length at this binding.
    fn kernel(&self, file: &'static str, spec: Spec, at: u32) -> Kernel {
        Kernel::of_file(file, limited(spec.flag("OFFSETS", self.segmented), self.counted, at))
    }

    /// Finds the best of f16 among the same numbers as f32, and copies the elements.
    fn lower_halves(&self, profile: &DeviceProfile) -> Result<Program> {
        let top = self.lower_best(DType::F32, profile)?;
        let mut program = Program::new(INFO.name, top.decision.clone());
        program.operands = top.operands.clone();
        let values = program.operands.len() - 2;
        (program.operands[0].dtype, program.operands[values].dtype) = (DType::F16, DType::F16);
        profile.check_bindings(INFO.name, &program.operands, "take fewer rows at a time")?;
        program.cost = Cost::of(top.cost.flop, &program.operands);
        let (len, best) = (program.operands[0].len, program.operands[values].len);
        if best == 0 {
            return Ok(program);
        }
        let [widened, found] = [len, best].map(|len| program.scratch(4 * len.max(1) as u64).resource);
        let ([input, values, indices], extra) = self.bound(&program);
        let length = extra.filter(|_| self.counted);
        let rows = if self.segmented { [1, len] } else { [self.rows, self.n] };
        let convert = Transform::new(rows, TransformFn::Convert).input(DType::F16, Broadcast::Each);
        let convert = Op::<f32>::lower(&convert.when(self.counted, Transform::counted), profile)
            .map_err(|e| e.context(INFO.name))?;
        let ends = [input.resource].into_iter().chain(length.map(|l| l.resource)).chain([widened]);
        program.append(convert, &ends.collect::<Vec<_>>());
        let offsets = extra.map(|extra| extra.resource);
        let operands: Vec<_> = [widened].into_iter().chain(offsets).chain([found, indices.resource]).collect();
        program.append(top, &operands);
        let copy = program.kernel(self.kernel("primitives/top_k_rows_halves", Spec::new(), 4));
        let count = index_u32(INFO.name, "rows x k", best)?;
        let params = TopKRowsPickParams { n: self.n as u32, k: self.k as u32, count };
        program.dispatch(
            copy,
            &params,
            [input, indices, values].into_iter().chain(length).collect(),
            Grid::fold(u64::from(count).div_ceil(512)),
        );
        Ok(program)
    }

    fn filter(&self, program: &mut Program, filter: &RowFilter, order: Spec, profile: &DeviceProfile) {
        let (n, k) = (self.n as u64, self.k as u64);
        let spec = order
            .constant("WORKGROUP_SIZE", filter.threads)
            .constant("ITEMS", filter.items)
            .flag("SELECT", filter.capacity >= SELECTED && !profile.quirks.slow_compiler)
            .constant("CAPACITY", filter.capacity);
        let kernel = program.kernel(self.kernel("primitives/top_k_rows", spec, 4));
        let ([input, values, indices], extra) = self.bound(program);
        if let Some(offsets) = extra.filter(|_| self.segmented) {
            let (n, k, rows) = (n as u32, k as u32, self.rows as u32);
            let params = TopKRowsParams { n, k, rows, ..bytemuck::Zeroable::zeroed() };
            program.dispatch(kernel, &params, vec![input, values, indices, offsets], Grid::fold(rows.into()));
            return;
        }
        let mut covered = Vec::new();
        for part in profile.chunks(self.rows as u64, 4 * n) {
            let spans = [n, k, k].map(|row| part.span(4 * row));
            let [before, values_before, indices_before] = spans.map(|span| (span.before / 4) as u32);
            let params = TopKRowsParams {
                n: n as u32,
                k: k as u32,
                rows: part.count as u32,
                before,
                values_before,
                indices_before,
                steps: filter.steps(n) as u32,
                first: part.first as u32,
            };
            let ends = [input, values, indices].map(|binding| binding.resource);
            let bindings = spans.iter().zip(ends).map(|(span, end)| span.of(end)).chain(extra).collect();
            covered.push((program.dispatches.len(), Covered::new(params.first, params.rows, 1)));
            program.dispatch(kernel, &params, bindings, Grid::fold(part.count));
        }
        if let Some(length) = extra {
            launch_for(program, length, &covered);
        }
    }

    /// Sorts by element, stably by row, and copies the first of each row.
    fn sort(&self, program: &mut Program, dtype: DType, profile: &DeviceProfile) -> Result<()> {
        let all = if self.segmented { self.n } else { self.rows * self.n };
        let count = index_u32(INFO.name, "rows x n", all)?;
        let ([input, values, indices], extra) = self.bound(program);
        let [places, keys, order] = [(); 3].map(|()| program.scratch(4 * u64::from(count.max(1))));
        let each = |items: u64| Grid::fold(items.div_ceil(256));
        if count > 0 {
            let write = program.kernel(Kernel::of_file("primitives/top_k_places", Spec::new()));
            let all = super::top_k::PlaceParams { first: 0, len: count };
            program.dispatch(write, &all, vec![places], each(count.into()));
        }
        if let Some(offsets) = extra.filter(|_| self.segmented) {
            let sort = SegmentedSort::new(self.n, self.rows).with_values();
            let sort = sort.when(!self.smallest, SegmentedSort::descending);
            let sorted = lowered(&sort, dtype, profile)?;
            program.append(sorted, &[input, offsets, places, keys, order].map(|binding| binding.resource));
        } else {
            self.sort_rows(program, dtype, [input, places, keys, order], count, profile)?;
        }
        let pick = program.kernel(self.kernel("primitives/top_k_rows_pick", Spec::new(), 5));
        let best = (self.rows * self.k) as u32;
        let params = TopKRowsPickParams { n: self.n as u32, k: self.k as u32, count: best };
        let bindings = [input, order, values, indices].into_iter().chain(extra).collect();
        program.dispatch(pick, &params, bindings, each(best.into()));
        Ok(())
    }

    fn sort_rows(
        &self, program: &mut Program, dtype: DType, [input, places, keys, order]: [Binding; 4], count: u32,
        profile: &DeviceProfile,
    ) -> Result<()> {
        let sort = RadixSort::new(count as usize).when(!self.smallest, |op| op.descending()).with_values();
        let sorted = lowered(&sort, dtype, profile)?;
        program.append(sorted, &[input, places, keys, order].map(|binding| binding.resource));
        if self.rows > 1 {
            let own = program.kernel(Kernel::of_file("primitives/top_k_rows_owners", Spec::new()));
            let params = TopKRowsOwnersParams { n: self.n as u32, count };
            program.dispatch(own, &params, vec![order, keys], Grid::fold(u64::from(count).div_ceil(256)));
            let bits = usize::BITS - (self.rows - 1).leading_zeros();
            let sort = RadixSort::new(count as usize).bits(0..bits).with_values().in_place();
            program.append(Op::<u32>::lower(&sort, profile)?, &[keys.resource, order.resource]);
        }
        Ok(())
    }
}

/// Lowers an op for elements of 32 bits.
fn lowered<D: Op<f32> + Op<i32> + Op<u32>>(op: &D, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
    match dtype {
        DType::F32 => Op::<f32>::lower(op, profile),
        DType::I32 => Op::<i32>::lower(op, profile),
        _ => Op::<u32>::lower(op, profile),
    }
}

operands! {
    impl[T: Element,] TopKRows, T {
        fn record(input: T, values: T, indices: u32);
        fn record_segments(input: T, offsets: u32, values: T, indices: u32);
        /// Takes rows of which those of the best are copied.
        optional with_payload<P>(payload: P, payload_out: P);
        /// Takes the number of rows from the device.
        optional with_length(length: u32);
    }
}

lowered_as!(TopKRows: f32, f16, i32, u32);

pub(super) const INFO: Operation = Operation {
    name: "top-k-rows",
    about: "the k largest elements of each row in order, and where they stood in the row",
    inputs: &[
        Input::new("input", "(rows, n); (n) with offsets"),
        Input::optional("payload", "(rows, n), any type; (n), any type with offsets"),
    ],
    outputs: &[
        ("values", "(rows, k); (s, k) with offsets"),
        ("indices", "u32 (rows, k); (s, k) with offsets"),
        ("[payload]", "(rows, k); (s, k) with offsets"),
    ],
    types: &DTYPES,
    options: &[Setting::number("k", ""), Setting::flag("smallest"), Setting::array("offsets", "u32 (s+1)"), LENGTH],
    domains: &[("input", Domain::Runs), ("offsets", Domain::Increasing), ("payload", Domain::Bits)],
    make: Some(make),
    variants: TopKRows::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[16, 16], options: &[("k", "3")] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let input = asked.any("input")?;
    let (shape, settings) = (input.shape().to_vec(), asked.settings());
    let n: usize = shape.iter().product();
    let given = settings.array("offsets").map_or(vec![n / 8 + 1], |offsets| offsets.shape().to_vec());
    let offsets = asked.named_of("offsets", &given, DType::U32)?;
    let k = settings.maybe("k")?.ok_or_else(|| {
        err!(InvalidArgument, "top-k-rows: --k is missing; give the number of elements to find in each row")
    })?;
    let (op, best) = match &offsets {
        None => {
            let [rows, n] = asked.dims("input", &input)?;
            (TopKRows::new([rows, n], k), vec![rows, k])
        }
        Some(offsets) => {
            let [len] = asked.dims("offsets", offsets)?;
            let segments = segments_of(asked, len)?;
            asked.set("s", &[segments]);
            (TopKRows::segments(n, segments, k), vec![segments, k])
        }
    };
    let mut op = op.when(settings.has("smallest"), TopKRows::smallest).variant(asked.variant());
    let (length, output) = asked.length(1, best)?;
    op = op.when(length.is_some(), TopKRows::counted);
    let dtype = input.dtype();
    let mut operands: Vec<_> = [input].into_iter().chain(offsets).map(Role::Given).chain(length).collect();
    operands.extend([output.clone(), output.clone()]);
    op.payload = asked_payload(asked, &shape, output, &mut operands)?;
    by_type!(asked, dtype, [f32, f16, i32, u32], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = |rows, n, k| TopKRows::new([rows, n], k).variant(variant);
    Ok(vec![
        op(5, 3000, 10).lower_as(DType::F32, profile)?,
        op(3, 1001, 200).smallest().lower_as(DType::I32, profile)?,
        op(2, 600, 500).lower_as(DType::U32, profile)?,
        op(2, 600, 50).lower_as(DType::F16, profile)?,
        op(2, 600, 50).counted().lower_as(DType::F16, profile)?,
        op(2, 600, 50).with_payload(DType::U8, 3).lower_as(DType::I32, profile)?,
        TopKRows::segments(900, 90, 5).variant(variant).lower_as(DType::F16, profile)?,
        TopKRows::segments(900, 90, 5).with_payload(DType::F32, 1).variant(variant).lower_as(DType::F32, profile)?,
    ])
}

#[cfg(test)]
mod tests;
