use super::Transpose;
use crate::program::prelude::*;

/// Puts the axes of an array in another order, out of place: `output[i[axes[0]], i[axes[1]], ...] = input[i[0], i[1],
/// ...]`, as `numpy.transpose`. Axis `k` of the output is axis `axes[k]` of the input.
///
/// ```
/// # if tilework::Gpu::adapters().is_empty() { return Ok(()); }
/// use tilework::prelude::*;
///
/// let gpu = Gpu::new()?;
/// let x = gpu.upload(&[1u32, 2, 3, 4, 5, 6, 7, 8])?; // 2 x 2 x 2
/// let y = gpu.alloc::<u32>(8)?;
/// let plan = PermuteAxes::new(&[2, 2, 2], &[1, 2, 0]).plan::<u32>(&gpu)?;
/// let mut rec = gpu.recorder();
/// plan.record(&mut rec, &x, &y)?;
/// rec.submit()?;
/// assert_eq!(y.read()?, [1, 5, 2, 6, 3, 7, 4, 8]);
/// # Ok::<(), tilework::Error>(())
/// ```
///
/// # Shapes
/// `input` has 1 to 6 axes, row-major without gaps; `output` has the same elements. Any extent may be 0. Elements are
/// of any type of at most 4 bytes. The operands must be different wgpu buffers.
///
/// # Precision and determinism
/// Bits are moved unchanged.
///
/// # Cost
/// No flop. Every element is read once and written once. One dispatch, no scratch.
///
/// # Variants
/// `naive`, `tiled`. Neighbouring axes that stay in order count as one. `tiled` moves tiles through workgroup memory
/// where another axis becomes the last; a batch of matrices runs as [`Transpose`]. `auto` (the default) takes
/// `naive` on software drivers and where the last axis stays last, since it then copies rows by 16 or 4 bytes; else
/// `tiled`.
///
/// # Errors
/// - [`InvalidArgument`](ErrorKind::InvalidArgument): `axes` that are not a permutation of all axes, no axes or
///   more than 6, an unknown variant.
/// - [`TooLarge`](ErrorKind::TooLarge): an operand above the largest binding.
///
/// # Algorithm
/// `shaders/dense/permute_axes.wgsl` and `permute_axes_tiled.wgsl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermuteAxes {
    shape: Vec<usize>,
    axes: Vec<usize>,
    variant: String,
}

const VARIANTS: &[Variant] = &[
    Variant::portable("naive", "a thread moves an element, or 16 bytes of rows that stay whole"),
    Variant::portable("tiled", "tiles in workgroup memory where another axis becomes the last"),
];

kernel_params! {
    struct PermuteAxesParams {
        n: u32,
        extent_0: u32, stride_0: u32, extent_1: u32, stride_1: u32, extent_2: u32, stride_2: u32,
        extent_3: u32, stride_3: u32, extent_4: u32, stride_4: u32, extent_5: u32, stride_5: u32,
    }
}

kernel_params! {
    struct PermuteTilesParams {
        across: u32, down: u32, stride_down: u32, stride_across: u32, tiles_across: u32, tiles_down: u32,
        workgroups: u32,
        extent_0: u32, from_0: u32, to_0: u32, extent_1: u32, from_1: u32, to_1: u32,
        extent_2: u32, from_2: u32, to_2: u32, extent_3: u32, from_3: u32, to_3: u32,
    }
}

pub(super) const MAX_AXES: usize = 6;

/// The spec of a kernel that makes elements of 4 bytes, or packs smaller ones into words.
pub(super) fn packed(dtype: DType) -> Spec {
    let pack = (4 / dtype.size()) as u32;
    Spec::new().constant("PACK", pack).flag("PACKED", pack > 1)
}

/// The workgroups of such a kernel, for `n` elements.
pub(super) fn words_of(n: u32, dtype: DType) -> Grid {
    Grid::fold((u64::from(n) * dtype.size() as u64).div_ceil(1024))
}

/// The numbers of up to six axes, with `usual` for those in front.
pub(super) fn six(numbers: impl ExactSizeIterator<Item = u32>, usual: u32) -> [u32; MAX_AXES] {
    let (mut all, absent) = ([usual; MAX_AXES], MAX_AXES.saturating_sub(numbers.len()));
    all[absent..].iter_mut().zip(numbers).for_each(|(place, number)| *place = number);
    all
}

/// Merges axes that follow each other in input and output, and drops those of extent 1: the extents of the input, and
/// the order.
fn merged(shape: &[usize], axes: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let kept: Vec<usize> = axes.iter().copied().filter(|axis| shape[*axis] != 1).collect();
    let follows =
        |k: &usize| *k > 0 && (kept[k - 1] + 1..kept[*k]).all(|axis| shape[axis] == 1) && kept[k - 1] < kept[*k];
    // The first axis of each group, in the order of the output, and the extents of the groups.
    let mut groups: Vec<(usize, usize)> = Vec::new();
    for k in 0..kept.len() {
        match groups.last_mut() {
            Some(group) if follows(&k) => group.1 *= shape[kept[k]],
            _ => groups.push((kept[k], shape[kept[k]])),
        }
    }
    let mut order: Vec<_> = groups.clone();
    order.sort_unstable();
    let place = |group: &(usize, usize)| order.iter().position(|other| other == group).unwrap_or(0);
    (order.iter().map(|group| group.1).collect(), groups.iter().map(place).collect())
}

/// How far apart neighbours along each axis are.
pub(super) fn strides(shape: &[usize]) -> Vec<usize> {
    (0..shape.len()).map(|axis| shape[axis + 1..].iter().product()).collect()
}

impl PermuteAxes {
    /// Takes the extents of the input, and for each axis of the output the axis of the input.
    pub fn new(shape: &[usize], axes: &[usize]) -> Self {
        Self { shape: shape.to_vec(), axes: axes.to_vec(), variant: "auto".into() }
    }

    variants!(variant);

    /// Extents of the input, and the order of its axes.
    pub(crate) fn parts(&self) -> (&[usize], &[usize]) {
        (&self.shape, &self.axes)
    }

    fn check(&self) -> Result<usize> {
        let Self { shape, axes, .. } = self;
        let mut sorted = axes.clone();
        sorted.sort_unstable();
        if !(1..=MAX_AXES).contains(&shape.len()) || !sorted.into_iter().eq(0..shape.len()) {
            return Err(err!(
                InvalidArgument,
                "permute-axes: the axes {axes:?} of an input {shape:?}; name each of its 1 to {MAX_AXES} axes once"
            ));
        }
        elements(INFO.name, "input", shape)
    }

    fn lower_as(&self, dtype: DType, profile: &DeviceProfile) -> Result<Program> {
        let len = self.check()?;
        // With an extent of 0 there is nothing to merge.
        let (extents, axes) = if len == 0 { (vec![0], vec![0]) } else { merged(&self.shape, &self.axes) };
        let stays = axes.last().is_none_or(|last| last + 1 == extents.len());
        let (_, decision) = choose(INFO.name, &self.variant, VARIANTS, profile, || {
            if profile.quirks.serial_workgroups {
                ("naive", "a processor's caches replace tiles, and its barriers are slow".to_owned())
            } else if stays {
                ("naive", "the last axis stays: rows are copied".to_owned())
            } else {
                ("tiled", "tiles make both loads and stores coalesce".to_owned())
            }
        })?;
        let mut program = Program::new(INFO.name, decision);
        let operand = |name, access| Operand { name, dtype, len, access };
        program.operands = vec![operand("input", Access::Read), operand("output", Access::Write)];
        profile.check_bindings(INFO.name, &program.operands, "permute parts in separate calls")?;
        program.cost = Cost::of(0.0, &program.operands);
        let tiled = program.variant() == "tiled";
        if len == 0 {
            return Ok(program);
        }
        if let ([.., m, n], true) = (&extents[..], tiled && !stays)
            && axes[axes.len() - 2..] == [extents.len() - 1, extents.len() - 2]
            && axes[..axes.len() - 2].iter().copied().eq(0..axes.len() - 2)
        {
            let transpose = Transpose::batched(len / (m * n), *m, *n).variant("tiled");
            let transpose = transpose.lower_as(dtype, profile).map_err(|e| e.context(INFO.name))?;
            program.append(transpose, &[Resource::Operand(0), Resource::Operand(1)]);
        } else if tiled && !stays && dtype.size() == 4 {
            tiles(&mut program, &extents, &axes);
        } else {
            items(&mut program, extents, &axes, dtype.size());
        }
        Ok(program)
    }
}

/// Adds the kernel that moves items by their indices.
fn items(program: &mut Program, mut extents: Vec<usize>, axes: &[usize], size: usize) {
    let stays = axes.last().is_none_or(|last| last + 1 == extents.len());
    let row = size * if stays { extents.last().copied().unwrap_or(1) } else { 1 };
    // The bytes that a thread moves at once.
    let item = [16, 4].into_iter().find(|item| row.is_multiple_of(*item));
    if let (Some(item), Some(last)) = (item, extents.last_mut().filter(|_| stays)) {
        *last = row / item;
    }
    let from = strides(&extents);
    let mut all = [(1u32, 0u32); MAX_AXES];
    for (k, &axis) in axes.iter().enumerate() {
        all[MAX_AXES - axes.len() + k] = (extents[axis] as u32, from[axis] as u32);
    }
    let pack = if item.is_some() { 1 } else { (4 / size) as u32 };
    let spec = Spec::new().constant("PACK", pack).flag("PACKED", pack > 1).flag("VECTORS", item == Some(16));
    let kernel = program.kernel(Kernel::of_file("dense/permute_axes", spec));
    let n: usize = extents.iter().product();
    let [
        (extent_0, stride_0),
        (extent_1, stride_1),
        (extent_2, stride_2),
        (extent_3, stride_3),
        (extent_4, stride_4),
        (extent_5, stride_5),
    ] = all;
    let params = PermuteAxesParams {
        n: n as u32,
        extent_0,
        stride_0,
        extent_1,
        stride_1,
        extent_2,
        stride_2,
        extent_3,
        stride_3,
        extent_4,
        stride_4,
        extent_5,
        stride_5,
    };
    let bindings = (0..2).map(|i| Binding::operand(i, &program.operands)).collect();
    program.dispatch(kernel, &params, bindings, Grid::fold((n as u64).div_ceil(256 * u64::from(pack))));
}

/// Adds the kernel that moves tiles of the input's last axis and the axis that becomes the last.
fn tiles(program: &mut Program, extents: &[usize], axes: &[usize]) {
    let (from, last) = (strides(extents), extents.len() - 1);
    let moved: Vec<usize> = axes.iter().map(|axis| extents[*axis]).collect();
    let places = strides(&moved);
    let to = |axis: usize| places[axes.iter().position(|other| *other == axis).unwrap_or(0)];
    let down = axes[axes.len() - 1];
    let mut others = [(1u32, 0u32, 0u32); 4];
    let rest = (0..last).filter(|axis| *axis != down);
    for (other, axis) in others.iter_mut().zip(rest) {
        *other = (extents[axis] as u32, from[axis] as u32, to(axis) as u32);
    }
    let [tiles_across, tiles_down] = [last, down].map(|axis| extents[axis].div_ceil(32) as u32);
    let all: u64 = others.iter().map(|other| u64::from(other.0)).product();
    let workgroups = all * u64::from(tiles_across) * u64::from(tiles_down);
    let [(extent_0, from_0, to_0), (extent_1, from_1, to_1), (extent_2, from_2, to_2), (extent_3, from_3, to_3)] =
        others;
    let params = PermuteTilesParams {
        across: extents[last] as u32,
        down: extents[down] as u32,
        stride_down: from[down] as u32,
        stride_across: to(last) as u32,
        tiles_across,
        tiles_down,
        workgroups: workgroups as u32,
        extent_0,
        from_0,
        to_0,
        extent_1,
        from_1,
        to_1,
        extent_2,
        from_2,
        to_2,
        extent_3,
        from_3,
        to_3,
    };
    let kernel = program.kernel(Kernel::of_file("dense/permute_axes_tiled", Spec::new()));
    let bindings = (0..2).map(|i| Binding::operand(i, &program.operands)).collect();
    program.dispatch(kernel, &params, bindings, Grid::fold(workgroups));
}

operands! {
    impl[T: Element,] PermuteAxes, T {
        fn record(input: T, output: T);
    }
}

lowered_as!(PermuteAxes: f32, f16, i32, u32, u8, i8);

pub(super) const INFO: Operation = Operation {
    name: "permute-axes",
    about: "axes in another order, as numpy.transpose; without axes, in reverse",
    inputs: &[Input::new("input", "(...)")],
    outputs: &[("output", "(permuted)")],
    types: &HostData::TYPES,
    options: &[Setting::text("axes", "AXIS,AXIS,...", "")],
    domains: &[("input", Domain::Bits)],
    make: Some(make),
    variants: PermuteAxes::variants,
    samples,
    comparison: Some(Comparison::Sums),
    example: Example { shape: &[5, 6, 7], options: &[("axes", "2,0,1")] },
    ..Operation::UNDECLARED
};

fn make(asked: &mut Asked<'_>) -> Result<OpCall> {
    let input = asked.any("input")?;
    let settings = asked.settings();
    let axes: Vec<usize> = match settings.word("axes") {
        None => (0..input.shape().len()).rev().collect(),
        Some(text) => {
            let axes = text.split(',').map(|axis| axis.trim().parse());
            axes.collect::<Result<_, _>>().map_err(|e| err!(InvalidArgument, "permute-axes: --axes {text}: {e}"))?
        }
    };
    let op = PermuteAxes::new(input.shape(), &axes).variant(asked.variant());
    op.check()?;
    let shape: Vec<usize> = axes.iter().map(|axis| input.shape()[*axis]).collect();
    asked.set("permuted", &shape);
    let (dtype, operands) = (input.dtype(), vec![Role::Given(input), Role::Result(shape)]);
    by_type!(asked, dtype, [f32, f16, i32, u32, u8, i8], T => Ok(OpCall::new::<T>(op, operands)))
}

fn samples(profile: &DeviceProfile, variant: &'static str) -> Result<Vec<Program>> {
    let all: [(&[usize], &[usize]); 4] =
        [(&[5, 40, 3], &[2, 0, 1]), (&[5, 6, 8], &[1, 0, 2]), (&[5, 6, 7], &[1, 0, 2]), (&[4, 5, 6, 7], &[3, 1, 2, 0])];
    let mut programs = Vec::new();
    for (shape, axes) in all {
        let op = PermuteAxes::new(shape, axes).variant(variant);
        programs.push(Op::<f32>::lower(&op, profile)?);
        programs.push(Op::<f16>::lower(&op, profile)?);
        programs.push(Op::<u8>::lower(&op, profile)?);
    }
    Ok(programs)
}

#[cfg(test)]
mod tests;
