use super::compact::{FEW, policy, scan_counts};
use super::lookback::Posts;
use super::merge::find_tiles;
use super::select_columns::{MovedColumn, PositionsOf, check_column};
use super::sets::{self, SETS, SetForm};
use crate::program::prelude::*;

const HIERARCHICAL: Variant = Variant::portable("hierarchical", "counts, scans and stores: two passes");
const LOOKBACK: Variant =
    Variant::portable("lookback", "one pass: each tile looks back at the counts of earlier tiles");

const VARIANTS: &[Variant] = &[HIERARCHICAL, LOOKBACK];

kernel_params! {
    pub(super) struct SetUnionParams { firsts: u32, seconds: u32, tiles: u32, first_tile: u32, all_tiles: u32, piece: u32 }
}

/// Threads of a workgroup, and elements of a thread, an odd number. 2^26 and 2^26 u32 on an H100 (Vulkan, driver
/// 580.159.04), by `lookback`: 1024 x 9 in 732 us, 512 x 17 749, 512 x 9 778.
fn tile(profile: &DeviceProfile) -> [u32; 2] {
    let limits = &profile.limits;
    if profile.quirks.serial_workgroups {
        [64, 7]
    } else if profile.features.subgroups && limits.max_invocations >= 1024 && limits.max_workgroup_bytes >= 48 << 10 {
        [1024, 9]
    } else {
        [256, 13]
    }
}

/// How elements are read, and how they are compared by merge path.
pub(super) fn walk_specs(dtype: DType) -> (Spec, Spec) {
    let spec = Spec::new()
        .slot("element", element_fragment(dtype))
        .flag("FLOAT", dtype.is_float())
        .flag("SIGNED", dtype == DType::I32)
        .flag("HALVES", dtype == DType::F16);
    let order = spec.clone().slot("order", Fragment::Library("primitives/set_order"));
    (spec.flag("GUESS", true), order)
}

/// Unites two sorted arrays, as `std::set_union`: an element that is `j` times in `a` and `k` times in `b` comes
/// `max(j, k)` times, first those of `a`, then the last `max(k - j, 0)` of `b`.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let (a, b) = (gpu.upload(&[1u32, 4, 4, 9])?, gpu.upload(&[1u32, 4, 5])?);
/// let (output, count) = (gpu.alloc::<u32>(7)?, gpu.alloc::<u32>(1)?);
/// let plan = SetUnion::new(4, 3).plan::<u32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &a, &b, &output, &count)?;
/// rec.submit()?;
/// let n = count.read()?[0] as usize;
/// assert_eq!(output.slice(..n)?.read()?, [1, 4, 4, 5, 9]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `a` has `n` elements, `b` has `m`, `output` has `n + m`, and `count` has one `u32`; each may be 0. Elements of
/// `output` behind the union are not written. Inputs may share a wgpu buffer with each other, and not with outputs.
/// With [`counted`](SetUnion::counted) the device holds the numbers of elements, and with
/// [`with_values`](SetUnion::with_values) each element takes a row of values along, that of the array that it comes
/// from, as in `thrust::set_union_by_key`.
///
/// # Types and order
/// f32, f16, i32, u32, both arrays ascending, as [`RadixSort`](crate::RadixSort) leaves them. Floats are compared by
/// value: -0 equals +0; NaN equals NaN and is above all numbers. Of arrays that are not sorted, `output` has at most
/// `n + m` elements of both; which and how many is unspecified.
///
/// # Precision and determinism
/// Bits are moved unchanged. Every variant gives the same result in every run.
///
/// # Cost
/// `lookback` reads both arrays once and writes the union; `hierarchical` reads them twice. Up to 5 dispatches.
/// Scratch: less than 20 bytes for each tile of 448 elements or more of both arrays. Values take a pass more, launched
/// for the count, and 4 bytes of scratch an element.
///
/// # Variants
/// - `hierarchical`: counts what each tile of the merge keeps, scans the counts, and stores.
/// - `lookback`: one pass. Each tile looks back at the counts of earlier ones.
///
/// # Errors
/// - [`Unsupported`](ErrorKind::Unsupported): a variant that the device cannot run, values of 64 bits.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the device's largest binding.
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): an unknown variant.
///
/// # Algorithm
/// Merge path, O. Green, R. McColl and D. Bader (2012), and decoupled look-back, D. Merrill and M. Garland (2016):
/// `shaders/primitives/set_union.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetUnion {
    form: SetForm,
    leave_out: u32,
}

impl SetUnion {
    /// Unites sorted arrays of `n` and `m` elements.
    pub fn new(n: usize, m: usize) -> Self {
        Self { form: SetForm::new(n, m), leave_out: 0 }
    }

    sets::set_lengths!();

    /// Moves a row of `width` elements of `dtype` with each element: operands `a_values`, of `n` rows, `b_values`, of
    /// `m`, and `values_out`, of `n + m`, which plans take by `with_values`.
    #[must_use]
    pub fn with_values(mut self, dtype: DType, width: usize) -> Self {
        self.form.values = Some((dtype, width));
        self
    }

    variants!(form.variant);

    super::lookback::leave_out_posts!(leave_out);

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let SetForm { n, m, counted, values, .. } = self.form;
        let len = n.saturating_add(m);
        // Above that there is no variant by subgroups.
        let few = profile.quirks.serial_workgroups && len <= FEW;
        let policy = || policy(if few { len } else { usize::MAX }, true, profile);
        let (variant, decision) = choose(INFO.name, &self.form.variant, VARIANTS, profile, policy)?;
        let mut program = Program::new(INFO.name, decision);
        let operand = |name, dtype, len, access| Operand { name, dtype, len, access };
        program.operands = vec![operand("a", dtype, n, Access::Read), operand("b", dtype, m, Access::Read)];
        if counted {
            let of = |name| operand(name, DType::U32, 1, Access::Read);
            program.operands.extend(["a_length", "b_length"].map(of));
        }
        if let Some((of, width)) = values {
            check_column(INFO.name, of)?;
            for (name, rows) in [("a_values", n), ("b_values", m)] {
                let len = elements(INFO.name, name, &[rows, width])?;
                program.operands.push(operand(name, of, len, Access::Read));
            }
        }
        // The number of kept elements is known only at the end, so the cost counts only reads.
        let read = program.operands.iter().map(|operand| operand.bytes() as f64).sum();
        program.cost = Cost { flop: len as f64, bytes: read };
        program.operands.push(operand("output", dtype, len, Access::Write));
        if let Some((of, width)) = values {
            let len = elements(INFO.name, "values_out", &[len, width])?;
            program.operands.push(operand("values_out", of, len, Access::Write));
        }
        program.operands.push(operand("count", DType::U32, 1, Access::Write));
        profile.check_bindings(INFO.name, &program.operands, "unite parts in separate calls")?;
        let len = u64::from(index_u32(INFO.name, "n + m", len)?);
        let bound: Vec<_> = (0..program.operands.len()).map(|i| Binding::operand(i, &program.operands)).collect();
        let (a, b, count) = (bound[0], bound[1], bound[bound.len() - 1]);
        let output = bound[bound.len() - 2 - usize::from(values.is_some())];
        if len == 0 {
            scan_counts(&mut program, count, 0, count);
            return Ok(program);
        }

        let [threads, items] = tile(profile);
        let tiles = len.div_ceil(u64::from(threads * items));
        let (spec, order) = walk_specs(dtype);
        let (firsts, seconds) = (n as u32, m as u32);
        let lens = ([firsts, seconds], counted.then(|| [bound[2], bound[3]]));
        let begins = find_tiles(&mut program, order, [a, b], lens, [threads, items]);
        let spec = spec
            .flag("SUBGROUPS", profile.features.subgroups)
            .flag("LIMITED", counted)
            .constant("WORKGROUP_SIZE", threads)
            .constant("ITEMS", items);
        let all_tiles = tiles as u32;
        let params = SetUnionParams { firsts, seconds, tiles: all_tiles, first_tile: 0, all_tiles, piece: 0 };
        let grid = Grid::fold(tiles);
        let mut bindings = vec![a, b, begins];
        let spec = if variant.name == "lookback" {
            let all = Posts { tiles, words: 1, counted: false, chunks: 1 };
            let posts = program.scratch(4 * all.scratch_words());
            all.clear(&mut program, posts);
            bindings.push(posts);
            let spec = spec.flag("ONCE", true).flag("NATIVE_ADD", profile.features.subgroups);
            all.spec(spec, profile, 4, self.leave_out).constant("OUTPUT_BINDING", 5)
        } else {
            let counts = program.scratch(4 * tiles);
            bindings.push(counts);
            let kernel = spec.clone().flag("COUNT", true);
            let kernel = Kernel::library("primitives/set_union", "set_union_count", kernel);
            let kernel = program.kernel(kernel);
            program.dispatch(kernel, &params, bindings.clone(), grid);
            let total = program.scratch(4);
            bindings.push(scan_counts(&mut program, counts, tiles, total));
            spec.constant("OUTPUT_BINDING", 6)
        };
        bindings.extend([output, count]);
        let places = values.map(|_| sets::places(&mut program, n + m, profile)).transpose()?;
        bindings.extend(places);
        let spec = spec.flag("PLACES", places.is_some());
        let kernel = program.kernel(Kernel::library("primitives/set_union", "set_union_tiles", spec));
        program.dispatch(kernel, &params, bindings, grid);
        if let (Some((dtype, width)), Some(positions)) = (values, places) {
            let of_a = 2 + if counted { 2 } else { 0 };
            let moved = MovedColumn {
                dtype,
                width,
                columns: (bound[of_a], n, Some(bound[of_a + 1])),
                rows: n + m,
                positions,
                output: bound[bound.len() - 2],
                length: Some(count),
                positions_of: PositionsOf::Column,
            };
            sets::move_values(&mut program, moved)?;
        }
        Ok(program)
    }
}

operands! {
    impl[T: Element,] SetUnion, T {
        fn record(a: T, b: T, output: T, count: u32);
        /// Takes the numbers of elements from the device.
        optional with_lengths(a_length: u32, b_length: u32);
        /// Takes rows that move with the elements.
        optional with_values<V>(a_values: V, b_values: V, values_out: V);
    }
}

lowered_as!(SetUnion: f32, f16, i32, u32);

pub(super) const INFO: Operation = Operation {
    name: "set-union",
    about: "the sorted elements of a, and those of b that a lacks, counted with repeats",
    inputs: &[
        Input::new("a", "(n)"),
        Input::new("b", "(m)"),
        Input::optional("a_values", "(n), any type"),
        Input::optional("b_values", "(m), the same type"),
    ],
    domains: &[
        ("a", Domain::Increasing),
        ("b", Domain::Increasing),
        ("a_values", Domain::Bits),
        ("b_values", Domain::Bits),
    ],
    make: Some(make),
    variants: SetUnion::variants,
    samples,
    ..SETS
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let (mut form, dtype, mut operands) = sets::asked(asked)?;
    if asked.has_more() {
        let of_a = asked.of_own_type("a_values", &[form.n])?;
        let of_b = asked.of("b_values", &[form.m], of_a.dtype())?;
        form.values = Some((of_a.dtype(), 1));
        operands.extend([of_a, of_b].map(Role::Given));
    }
    let operands = sets::with_outputs(&form, operands);
    let op = SetUnion { form, leave_out: 0 };
    by_type!(asked, dtype, [f32, f16, i32, u32], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let op = SetUnion::new(10_000, 3000).variant(variant);
    let blocked = op.clone().leave_out_posts(2);
    let counted = op.clone().counted();
    Ok(vec![
        Op::<f32>::lower(&op, profile)?,
        Op::<f32>::lower(&counted, profile)?,
        Op::<i32>::lower(&op, profile)?,
        Op::<f16>::lower(&op, profile)?,
        Op::<f16>::lower(&counted.with_values(DType::U8, 3), profile)?,
        Op::<u32>::lower(&op.with_values(DType::F32, 1), profile)?,
        Op::<u32>::lower(&blocked, profile)?,
    ])
}
