//! Packs the factors of a product on cooperative matrices.
//!
//! The kernel reads four elements at a time where the layout of a factor allows it, and else two or one. Where that
//! costs more than a copy, or elements are split, the factor is first copied to scratch as f16, in its storage order
//! and with rows of whole pieces.

use super::coop::{CoopForm, PIECE};
use super::job::ProductJob;
use super::layout::BatchLayout;
use super::{DenseLayout, Division, Precision, policy};
use crate::element::DType;
use crate::error::{Result, err};
use crate::program::{Binding, Grid, Kernel, Program, kernel_params};
use crate::shader::Spec;
use crate::shape::{index_u32, round_up};

kernel_params! {
    /// Parameters of the kernel that packs a factor.
    struct PackFactorParams {
        rows: u32,
        cols: u32,
        ld: u32,
        pieces: u32,
        pieces_of_row: u32,
        first_magnitude: u32,
    }
}

kernel_params! {
    /// Parameters of the kernels that find the magnitudes of rows and columns.
    struct ScaleParams {
        rows: u32,
        cols: u32,
        ld: u32,
        first_magnitude: u32,
        magnitudes: u32,
        tiles: u32,
        chunks: u32,
    }
}

/// Threads of a workgroup of both, as in the shaders.
const WORKGROUP_SIZE: u64 = 256;

/// How the kernel reads a factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FactorLoad {
    /// In place: 4, 2 or 1 elements of this type at a time.
    InPlace(u32, DType),
    /// From a copy in f16, made by a pass of its own.
    Packed,
}

impl FactorLoad {
    /// The loads of A and B for a product in this division.
    pub(super) fn of(job: &ProductJob<'_>, division: Division) -> [Self; 2] {
        let product = job.product;
        let place = |i: usize| {
            let BatchLayout { at, stride, .. } = job.layouts[i];
            let stride = if product.batch == 1 { 0 } else { stride };
            let fits = |unit: &usize| [at.ld, at.cols, stride].iter().all(|x| x.is_multiple_of(*unit));
            let unit = [4, 2].into_iter().find(fits).unwrap_or(1) as u32;
            let packs = product.precision == Precision::Split
                || !product.batched
                    && product.packs.unwrap_or_else(|| policy::packing_pays(job, &division, i, unit));
            if packs { Self::Packed } else { Self::InPlace(unit, job.types.factors) }
        };
        let loads = [place(0), place(1)];
        // A row of a copy ends with zeros, which must meet zeros.
        let along_k = [!product.trans_a, product.trans_b];
        let pads = |(load, along_k)| load == Self::Packed && along_k;
        if loads.into_iter().zip(along_k).any(pads) && !product.k.is_multiple_of(4) {
            return [Self::Packed; 2];
        }
        loads
    }

    /// Elements of one load.
    pub(super) fn unit(self) -> u32 {
        if let Self::InPlace(unit, _) = self { unit } else { 4 }
    }

    /// The type of the elements in WGSL.
    pub(super) fn element(self) -> &'static str {
        if self.in_place(DType::F32) { "f32" } else { "f16" }
    }

    fn in_place(self, dtype: DType) -> bool {
        matches!(self, Self::InPlace(_, of) if of == dtype)
    }
}

/// One of the factors.
struct StoredFactor {
    /// Its operand, and its name in texts.
    operand: usize,
    name: &'static str,
    at: DenseLayout,
    /// The stored rows run along k.
    along_k: bool,
    /// The index of its first row's or column's magnitude among those of both.
    first_magnitude: u32,
}

/// Both factors as the kernel reads them.
pub(super) struct PackedFactors {
    /// A and B; if they are split, the high halves of both, the low ones, and the magnitudes.
    pub(super) bindings: Vec<Binding>,
    /// Elements from one stored row to the next.
    pub(super) lds: [u32; 2],
    /// Steps of k, padding included.
    pub(super) k: usize,
}

impl PackedFactors {
    /// Writes the passes that pack factors which the kernel of `form` does not read in place.
    pub(super) fn of(job: &ProductJob<'_>, program: &mut Program, form: &CoopForm) -> Result<Self> {
        let product = job.product;
        let [a, b] = [job.layouts[0].at, job.layouts[1].at];
        let (along_a, along_b, m) = (!product.trans_a, product.trans_b, product.m as u32);
        let factors = [
            StoredFactor { operand: 0, name: "a", at: a, along_k: along_a, first_magnitude: 0 },
            StoredFactor { operand: 1, name: "b", at: b, along_k: along_b, first_magnitude: m },
        ];
        // Zeros up to a whole load, where both factors are copies.
        let pads = form.loads == [FactorLoad::Packed; 2];
        let k = if pads { product.k.next_multiple_of(4) } else { product.k };

        let magnitudes = if form.split { Some(magnitudes(job, program, &factors)?) } else { None };
        let mut lds = [0; 2];
        let (mut bindings, mut low) = (Vec::with_capacity(8), Vec::new());
        for ((factor, load), to) in factors.iter().zip(form.loads).zip(&mut lds) {
            if load == FactorLoad::Packed {
                let (halves, ld) = pack(job, program, factor, k, magnitudes)?;
                bindings.push(halves[0]);
                low.extend_from_slice(&halves[1..]);
                *to = ld;
            } else {
                bindings.push(Binding::operand(factor.operand, &program.operands));
                *to = index_u32(job.name, "ld", factor.at.ld)?;
            }
        }
        bindings.extend(low);
        bindings.extend(magnitudes);
        Ok(Self { bindings, lds, k })
    }
}

/// Writes the passes that find the largest magnitude of each row of op(A) and column of op(B).
fn magnitudes(job: &ProductJob<'_>, program: &mut Program, factors: &[StoredFactor; 2]) -> Result<Binding> {
    const ACROSS: usize = 32;
    const DOWN: usize = WORKGROUP_SIZE as usize / ACROSS;
    const CHUNK: usize = 1024;
    let all = job.product.m.saturating_add(job.product.n);
    let count = index_u32(job.name, "the rows and columns to scale", all)?;
    let scratch =
        scratch(job, program, 4 * u64::from(count), || "the magnitudes of its rows and columns".into())?;
    let none = ScaleParams { magnitudes: count, ..bytemuck::Zeroable::zeroed() };
    let clear = program.kernel(Kernel::library("dense/gemm_scales", "gemm_scales_clear", Spec::new()));
    let grid = Grid::fold(u64::from(count).div_ceil(WORKGROUP_SIZE));
    program.dispatch(clear, &none, vec![scratch], grid);
    for factor in factors {
        let DenseLayout { rows, cols, ld } = factor.at;
        // Elements that share a scale run along k.
        let columns = !factor.along_k;
        let (chunks, lines) = if columns {
            (rows.div_ceil(CHUNK), cols.div_ceil(ACROSS))
        } else {
            (cols.div_ceil(CHUNK), rows.div_ceil(DOWN))
        };
        let params = ScaleParams {
            rows: rows as u32,
            cols: cols as u32,
            ld: index_u32(job.name, "ld", ld)?,
            first_magnitude: factor.first_magnitude,
            tiles: (chunks * lines) as u32,
            chunks: chunks as u32,
            ..none
        };
        let spec = Spec::new().flag("COLUMNS", columns);
        let kernel = program.kernel(Kernel::library("dense/gemm_scales", "gemm_scales", spec));
        let input = Binding::operand(factor.operand, &program.operands);
        program.dispatch(kernel, &params, vec![scratch, input], Grid::fold(u64::from(params.tiles)));
    }
    Ok(scratch)
}

/// Writes the pass that packs a factor for `k` steps. Returns the packed factor, or its high and low halves, and
/// the elements from one of its rows to the next.
fn pack(
    job: &ProductJob<'_>,
    program: &mut Program,
    factor: &StoredFactor,
    k: usize,
    magnitudes: Option<Binding>,
) -> Result<(Vec<Binding>, u32)> {
    let DenseLayout { rows, cols, ld } = factor.at;
    let (out_rows, out_cols) = if factor.along_k { (rows, k) } else { (k, cols) };
    let out_cols = out_cols.next_multiple_of(PIECE as usize);
    let bytes = 2 * (out_rows as u64).saturating_mul(out_cols as u64);
    let what = || format!("{} as f16", factor.name);
    let mut halves = vec![scratch(job, program, bytes, what)?];
    if magnitudes.is_some() {
        halves.push(scratch(job, program, bytes, what)?);
    }
    let pieces_of_row = out_cols / PIECE as usize;
    let params = PackFactorParams {
        rows: rows as u32,
        cols: cols as u32,
        ld: index_u32(job.name, "ld", ld)?,
        pieces: index_u32(job.name, "the loads of a factor", out_rows * pieces_of_row)?,
        pieces_of_row: pieces_of_row as u32,
        first_magnitude: factor.first_magnitude,
    };
    let f16 = job.types.factors == DType::F16;
    let mut spec = Spec::new()
        .alias("T", if f16 { "f16" } else { "f32" })
        .flag("VEC4S", factor.at.vec4s())
        .flag("LOW", magnitudes.is_some());
    if magnitudes.is_some() {
        spec = spec.flag("POWER_OF_COLUMN", !factor.along_k);
    }
    let kernel = program.kernel(Kernel::library("dense/gemm_pack", "gemm_pack", spec));
    let mut bindings = vec![Binding::operand(factor.operand, &program.operands)];
    bindings.extend(&halves);
    bindings.extend(magnitudes);
    let grid = Grid::fold(u64::from(params.pieces).div_ceil(WORKGROUP_SIZE));
    program.dispatch(kernel, &params, bindings, grid);
    Ok((halves, out_cols as u32))
}

/// Allocates scratch for a pass, which one binding must hold.
fn scratch(
    job: &ProductJob<'_>,
    program: &mut Program,
    bytes: u64,
    what: impl Fn() -> String,
) -> Result<Binding> {
    let limit = job.profile.limits.max_storage_binding;
    if bytes > limit {
        return Err(err!(
            TooLarge,
            "{}: {} needs {bytes} bytes of scratch, above the {limit} bytes of the largest storage binding of {}; \
             compute blocks of C in separate calls",
            job.name,
            what(),
            job.profile.name
        ));
    }
    Ok(program.scratch(round_up(bytes, 16)))
}

#[cfg(test)]
mod tests {
    use crate::dense::product::trial::{lower, refusal};
    use crate::dense::{Gemm, Precision};
    use crate::error::ErrorKind;
    use crate::program::{DeviceProfile, Op};
    use half::f16;

    // The scheme of [`Precision::Split`] in plain Rust, as in the shaders.

    /// As shaders/dense/gemm_power.wgsl.
    fn power_of(magnitude: u32) -> i32 {
        let field = (magnitude >> 23) as i32;
        let subnormal = 31 - magnitude.leading_zeros() as i32 - 149;
        let exponent = if field == 0 { subnormal } else { field - 127 };
        if magnitude == 0 { 0 } else { 14 - exponent }
    }

    fn times_power(x: f32, power: i32) -> f32 {
        let two_to = |p: i32| f32::from_bits(((p.clamp(-126, 127) + 127) as u32) << 23);
        let half = power >> 1;
        x * two_to(half) * two_to(power - half)
    }

    /// The power of a row or column, and its elements in two halves.
    fn split(line: &[f32]) -> (i32, Vec<[f64; 2]>) {
        let finite = line.iter().map(|x| x.to_bits() & 0x7fff_ffff).filter(|x| *x < 0x7f80_0000);
        let power = power_of(finite.max().unwrap_or(0));
        let halves = line.iter().map(|x| {
            let y = times_power(*x, power);
            let high = f16::from_f32(y);
            let low = if y.is_finite() { f16::from_f32(y - high.to_f32()) } else { f16::ZERO };
            [high.to_f64(), low.to_f64()]
        });
        (power, halves.collect())
    }

    /// Truncates to f32.
    fn cut(x: f64) -> f64 {
        let y = x as f32;
        f64::from(if f64::from(y).abs() > x.abs() { f32::from_bits(y.to_bits() - 1) } else { y })
    }

    /// The kernel's sum with `step` of k in a tile, on matrices that truncate.
    fn product(a: &[f32], b: &[f32], step: usize) -> f32 {
        let ((power_a, a), (power_b, b)) = (split(a), split(b));
        let mut sum = 0f32;
        for (a, b) in a.chunks(step).zip(b.chunks(step)) {
            let mut part = 0.0;
            for (a, b) in a.chunks(16).zip(b.chunks(16)) {
                for [x, y] in [[1, 0], [0, 1], [0, 0]] {
                    part = cut(part + a.iter().zip(b).map(|(a, b)| a[x] * b[y]).sum::<f64>());
                }
            }
            sum += part as f32;
        }
        times_power(sum, -power_a - power_b)
    }

    /// The distribution of a line of random numbers.
    #[derive(Debug, Clone, Copy)]
    enum Kind {
        Uniform,
        /// Nonnegative, so that nothing cancels and truncation errors add up.
        Positive,
        Normal,
        BadlyScaled,
    }

    fn line(random: &mut impl FnMut() -> f64, k: usize, kind: Kind) -> Vec<f32> {
        let scale = if let Kind::BadlyScaled = kind { 10f64.powf(30.0 * random() - 15.0) } else { 1.0 };
        let mut element = || match kind {
            Kind::Uniform | Kind::BadlyScaled => 2.0 * random() - 1.0,
            Kind::Positive => random(),
            Kind::Normal => {
                let (x, y) = (1.0 - random(), random());
                (-2.0 * x.ln()).sqrt() * (std::f64::consts::TAU * y).cos()
            }
        };
        (0..k).map(|_| (scale * element()) as f32).collect()
    }

    #[test]
    fn products_of_halves_err_at_most_twice_as_much_as_those_of_f32() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        for kind in [Kind::Uniform, Kind::Positive, Kind::Normal, Kind::BadlyScaled] {
            for k in [64, 256, 1024, 4096] {
                for step in [16, 32] {
                    // The largest error and the sum of all, of f32 and of halves, relative to the sum of
                    // magnitudes.
                    let (mut largest, mut all) = ([0f64; 2], [0f64; 2]);
                    for _ in 0..200 {
                        let (a, b) = (line(&mut random, k, kind), line(&mut random, k, kind));
                        let terms = || a.iter().zip(&b).map(|(a, b)| f64::from(*a) * f64::from(*b));
                        let (exact, size) = (terms().sum::<f64>(), terms().map(f64::abs).sum::<f64>());
                        let strict = a.iter().zip(&b).fold(0f32, |sum, (a, b)| a.mul_add(*b, sum));
                        for (i, got) in [strict, product(&a, &b, step)].into_iter().enumerate() {
                            let error = (f64::from(got) - exact).abs() / size;
                            largest[i] = largest[i].max(error);
                            all[i] += error;
                        }
                    }
                    let text = format!("{kind:?}, k = {k}, steps of {step}: {largest:?}, {all:?}");
                    println!("{text}");
                    assert!(largest[1] <= 2.0 * largest[0] && all[1] <= 2.0 * all[0], "{text}");
                }
            }
        }
    }

    #[test]
    fn powers_bring_every_number_into_range() {
        for x in [f32::MAX, 1e30, 3.0, 1.0, 1e-15, f32::MIN_POSITIVE, 1e-40, f32::from_bits(1)] {
            let power = power_of(x.to_bits());
            let y = times_power(x, power);
            assert!((16384.0..32768.0).contains(&y), "{x} 2^{power} = {y}");
            assert_eq!(times_power(y, -power), x);
        }
        assert_eq!(power_of(0), 0);
        // Zero, NaN and infinity have no low half.
        let (power, halves) = split(&[0.0, f32::INFINITY, -2.5]);
        assert_eq!((power, halves[0], halves[1]), (13, [0.0; 2], [f64::INFINITY, 0.0]));
        assert_eq!(halves[2], [-20480.0, 0.0]);
    }

    #[test]
    fn factors_are_copied_where_that_pays_or_was_asked_for() {
        let h100 = DeviceProfile::h100();
        let scratch = |gemm: &Gemm| {
            let gemm = gemm.clone().variant("coop").mixed_precision().slices(1);
            let program = Op::<f16>::lower(&gemm, &h100).unwrap();
            assert_eq!(program.dispatches.len(), program.scratch.len() + 1);
            program.scratch
        };
        for gemm in
            [Gemm::new(4096, 4096, 4096), Gemm::new(37, 39, 96), Gemm::new(40, 40, 41), Gemm::new(40, 40, 8)]
        {
            assert!(scratch(&gemm).is_empty(), "{gemm:?}");
        }
        // Loads of single elements would slow a large product down more than copies do.
        assert_eq!(scratch(&Gemm::new(4095, 4097, 4093)), [2 * 4095 * 4096, 2 * 4096 * 4104]);
        let packed = |gemm: Gemm| scratch(&gemm.packed(true));
        assert_eq!(packed(Gemm::new(37, 40, 96).lda(97)), [2 * 37 * 96, 2 * 96 * 40]);
        // Part of a load along k: zeros in both copies.
        assert_eq!(packed(Gemm::new(40, 40, 41)), [2 * 40 * 48, 2 * 44 * 40]);
        assert_eq!(packed(Gemm::new(40, 40, 8)), [2 * 40 * 8, 2 * 8 * 40]);

        let single = |gemm: &Gemm| {
            let program = lower(gemm, &h100).unwrap();
            let entries: Vec<_> =
                program.dispatches.iter().map(|d| program.kernels[d.kernel].entry).collect();
            (program.scratch.clone(), entries)
        };
        let (a, b) = (2 * 40 * 96, 2 * 96 * 48);
        let gemm = Gemm::new(40, 48, 96).precision(Precision::Tensor);
        assert_eq!(single(&gemm), (vec![], vec!["gemm_coop"]));
        assert_eq!(single(&gemm.packed(true)), (vec![a, b], vec!["gemm_pack", "gemm_pack", "gemm_coop"]));
        let scales = ["gemm_scales_clear", "gemm_scales", "gemm_scales"];
        let passes = [&scales[..], &["gemm_pack", "gemm_pack", "gemm_coop"]].concat();
        let split = Gemm::new(40, 48, 96).precision(Precision::Split);
        assert_eq!(single(&split), (vec![4 * 88, a, a, b, b], passes));

        let mut small = DeviceProfile::h100();
        small.limits.max_storage_binding = 4 * 40 * 48 - 1;
        let gemm = Gemm::new(4, 4, 6000).variant("coop").trans_b();
        let (kind, text) = refusal(&gemm, &small);
        assert!(kind == ErrorKind::TooLarge && text.contains("bytes"), "{text}");
        small.limits.max_storage_binding = 8 * 7001;
        let gemm = Gemm::new(4, 4, 7001).variant("coop").trans_b().packed(true);
        let op = Op::<f16>::lower(&gemm, &small).unwrap_err();
        let text = op.to_string();
        assert!(op.kind() == ErrorKind::TooLarge && text.contains("56064 bytes of scratch"), "{text}");
    }
}
