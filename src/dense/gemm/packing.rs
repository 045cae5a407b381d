//! A product by cooperative matrices: which factors are packed for it, and the passes.
//!
//! The kernel loads pieces of eight elements of f16. A factor that is made of whole ones is read where it lies; any other
//! is copied to scratch first, in the order that it is stored in.

use super::coop::{End, Form, PIECE};
use super::policy::Division;
use super::{Binding, DType, Job, Kernel, Layout, Params, Precision, Types, slice_k};
use crate::dense::{Activation, Gemm};
use crate::error::{Result, err};
use crate::program::{DeviceProfile, Grid, kernel_params};
use crate::shader::Spec;
use crate::shape::{index_u32, round_up};

kernel_params! {
    /// Of the kernel that packs a factor.
    struct PackParams {
        rows: u32,
        cols: u32,
        ld: u32,
        pieces: u32,
        pieces_of_row: u32,
        first_magnitude: u32,
    }
}

kernel_params! {
    /// Of the kernels that find the magnitudes of rows and columns.
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

/// Invocations of a workgroup of both, as their files say.
const WORKGROUP_SIZE: u64 = 256;

/// One of the factors.
struct Factor {
    /// Its operand, and its name in texts.
    operand: usize,
    name: &'static str,
    at: Layout,
    /// Whether the stored rows run along k.
    along_k: bool,
}

impl Factor {
    /// Whether the kernel can read it where it lies, k apart.
    fn whole(&self) -> bool {
        [self.at.ld, self.at.cols].iter().all(|x| x.is_multiple_of(PIECE as usize))
    }
}

/// A factor as the kernel reads it: the whole of it, or its high halves and its low ones.
struct Packed {
    halves: Vec<Binding>,
    ld: u32,
}

impl Gemm {
    /// The precision that `variant` computes with. Asking for cooperative matrices by name is asking for `Tensor`.
    pub(super) fn precision_of(&self, variant: &str) -> Precision {
        match self.precision {
            Precision::Strict if variant == "coop" => Precision::Tensor,
            precision => precision,
        }
    }

    /// What a kernel on cooperative matrices is written for.
    pub(super) fn coop_form(
        &self,
        division: Division,
        types: Types,
        bias: bool,
        profile: &DeviceProfile,
    ) -> Form {
        let side = profile.cooperative_side().unwrap_or(16);
        let split = self.precision == Precision::Split;
        let as_it_is = self.alpha == 1.0 && self.beta == 0.0 && self.activation == Activation::None && !bias;
        // Rows of a block that is stored are 16-byte aligned.
        let direct = as_it_is
            && types.result == DType::F32
            && !split
            && self.k <= slice_k(profile)
            && self.layout_c().ld.is_multiple_of(4);
        let whole = [self.m, self.n].iter().all(|x| x.is_multiple_of(side as usize));
        Form {
            tile: division.tile,
            part: division.thread,
            side,
            lanes: profile.subgroup_sizes.0,
            trans_a: self.trans_a,
            trans_b: self.trans_b,
            split,
            fresh: self.fresh_sums,
            end: match (direct, whole) {
                (true, true) => End::Whole,
                (true, false) => End::Direct,
                (false, _) => End::Staged,
            },
        }
    }

    /// The product by cooperative matrices.
    pub(super) fn coop_product(&self, mut job: Job<'_>, form: Form) -> Result<()> {
        let tile = form.tile;
        let factors = [
            Factor { operand: 0, name: "a", at: self.layout_a(), along_k: !self.trans_a },
            Factor { operand: 1, name: "b", at: self.layout_b(), along_k: self.trans_b },
        ];
        let f32 = job.program.operands[0].dtype == DType::F32;
        // Zeros up to a whole step, where a piece would be part of k only, or the first step beyond its end.
        let along_k = factors.iter().any(|f| f.along_k);
        let pads = self.k < tile.k as usize || along_k && !self.k.is_multiple_of(PIECE as usize);
        let k = if pads { self.k.next_multiple_of(tile.k as usize) } else { self.k };

        let magnitudes = if form.split { Some(self.magnitudes(&mut job, &factors)?) } else { None };
        let mut packed = Vec::new();
        for factor in &factors {
            packed.push(if f32 || pads || !factor.whole() {
                self.pack(&mut job, factor, k, magnitudes)?
            } else {
                let operands = &job.program.operands;
                let halves = vec![Binding::operand(factor.operand, operands)];
                Packed { halves, ld: index_u32(&self.name(), "ld", factor.at.ld)? }
            });
        }

        // Slices of about one length, so that each is at least a step.
        let slices = self.k.div_ceil(slice_k(job.profile));
        let slice = k.div_ceil(slices).next_multiple_of(tile.k as usize);
        let carry = slices > 1;
        let mut bindings = Vec::new();
        for half in 0..packed[0].halves.len() {
            bindings.extend(packed.iter().map(|p| p.halves[half]));
        }
        bindings.extend(magnitudes);
        let spec = self.end_spec(&job, 1 + bindings.len() as u32, carry);
        let direct = form.end != End::Staged;
        let spec = spec.flag("VEC_C", !direct && self.layout_c().fours());
        let kernel = job.program.kernel(form.kernel(spec));
        bindings.extend(job.operands(2));
        if carry {
            bindings.push(job.program.scratch(self.sums_bytes(1, job.profile)?));
        }
        let params = Params { lda: packed[0].ld, ldb: packed[1].ld, ..self.params(k, tile)? };
        for first_k in (0..k).step_by(slice) {
            let end_k = k.min(first_k + slice);
            let params = Params { first_k: first_k as u32, end_k: end_k as u32, ..params };
            job.bands(kernel, &params, &bindings, tile, self, 1)?;
        }
        Ok(())
    }

    /// The passes that find the greatest magnitude of each row of op(A) and column of op(B).
    fn magnitudes(&self, job: &mut Job<'_>, factors: &[Factor; 2]) -> Result<Binding> {
        const ACROSS: usize = 32;
        const DOWN: usize = WORKGROUP_SIZE as usize / ACROSS;
        const CHUNK: usize = 1024;
        let name = self.name();
        let count = index_u32(&name, "the rows and columns to scale", self.m.saturating_add(self.n))?;
        let scratch = self.scratch(job, 4 * u64::from(count), "the magnitudes of its rows and columns")?;
        let none = ScaleParams {
            rows: 0,
            cols: 0,
            ld: 0,
            first_magnitude: 0,
            magnitudes: count,
            tiles: 0,
            chunks: 0,
        };
        let clear = Kernel::library("dense/gemm_scales", "gemm_scales_clear", Spec::new());
        let clear = job.program.kernel(clear);
        let grid = Grid::fold(u64::from(count).div_ceil(WORKGROUP_SIZE));
        job.program.dispatch(clear, &none, vec![scratch], grid);
        for (factor, first_magnitude) in factors.iter().zip([0, self.m as u32]) {
            let Layout { rows, cols, ld } = factor.at;
            // What is scaled together runs along k.
            let columns = !factor.along_k;
            let (chunks, lines) = if columns {
                (rows.div_ceil(CHUNK), cols.div_ceil(ACROSS))
            } else {
                (cols.div_ceil(CHUNK), rows.div_ceil(DOWN))
            };
            let params = ScaleParams {
                rows: rows as u32,
                cols: cols as u32,
                ld: index_u32(&name, "ld", ld)?,
                first_magnitude,
                tiles: (chunks * lines) as u32,
                chunks: chunks as u32,
                ..none
            };
            let spec = Spec::new().flag("COLUMNS", columns);
            let kernel = job.program.kernel(Kernel::library("dense/gemm_scales", "gemm_scales", spec));
            let input = Binding::operand(factor.operand, &job.program.operands);
            let grid = Grid::fold(u64::from(params.tiles));
            job.program.dispatch(kernel, &params, vec![scratch, input], grid);
        }
        Ok(scratch)
    }

    /// The pass that packs a factor for `k` steps, and what comes of it.
    fn pack(
        &self,
        job: &mut Job<'_>,
        factor: &Factor,
        k: usize,
        magnitudes: Option<Binding>,
    ) -> Result<Packed> {
        let Layout { rows, cols, ld } = factor.at;
        let (out_rows, out_cols) =
            if factor.along_k { (rows, k) } else { (k, cols.next_multiple_of(PIECE as usize)) };
        let bytes = 2 * (out_rows as u64).saturating_mul(out_cols as u64);
        let what = format!("{} as f16", factor.name);
        let mut halves = vec![self.scratch(job, bytes, &what)?];
        if magnitudes.is_some() {
            halves.push(self.scratch(job, bytes, &what)?);
        }
        let pieces_of_row = out_cols / PIECE as usize;
        let name = self.name();
        let params = PackParams {
            rows: rows as u32,
            cols: cols as u32,
            ld: index_u32(&name, "ld", ld)?,
            pieces: index_u32(&name, "the pieces of a factor", out_rows * pieces_of_row)?,
            pieces_of_row: pieces_of_row as u32,
            first_magnitude: if factor.operand == 0 { 0 } else { self.m as u32 },
        };
        let operand = &job.program.operands[factor.operand];
        let f16 = operand.dtype == DType::F16;
        let mut spec = Spec::new()
            .alias("T", if f16 { "f16" } else { "f32" })
            .flag("FOURS", factor.at.fours())
            .flag("LOW", magnitudes.is_some());
        if magnitudes.is_some() {
            spec = spec.flag("POWER_OF_COLUMN", !factor.along_k);
        }
        let kernel = job.program.kernel(Kernel::library("dense/gemm_pack", "gemm_pack", spec));
        let mut bindings = vec![Binding::operand(factor.operand, &job.program.operands)];
        bindings.extend(&halves);
        bindings.extend(magnitudes);
        let grid = Grid::fold(u64::from(params.pieces).div_ceil(WORKGROUP_SIZE));
        job.program.dispatch(kernel, &params, bindings, grid);
        Ok(Packed { halves, ld: out_cols as u32 })
    }

    /// Scratch for a pass, which one binding must hold.
    fn scratch(&self, job: &mut Job<'_>, bytes: u64, what: &str) -> Result<Binding> {
        let limit = job.profile.limits.max_storage_binding;
        if bytes > limit {
            return Err(err!(
                TooLarge,
                "{}: {what} needs {bytes} bytes of scratch, above the {limit} bytes of the largest storage binding of {}; \
                 compute C in blocks of rows and columns, a call each",
                self.name(),
                job.profile.name
            ));
        }
        Ok(job.program.scratch(round_up(bytes, 16)))
    }
}

#[cfg(test)]
mod tests {
    //! The scheme of [`Precision::Split`] in plain Rust, as the shaders have it.

    use half::f16;

    /// shaders/dense/gemm_power.wgsl.
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

    /// To f32, cut off.
    fn cut(x: f64) -> f64 {
        let y = x as f32;
        f64::from(if f64::from(y).abs() > x.abs() { f32::from_bits(y.to_bits() - 1) } else { y })
    }

    /// The sum as the kernel has it, with `step` of k in a tile, by matrices that cut off.
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

    /// What a line of random numbers is like.
    #[derive(Debug, Clone, Copy)]
    enum Kind {
        Uniform,
        /// From 0 on, so that nothing cancels and what is cut off adds up.
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
                    // The largest error, and the sum of all, of f32 and of halves; of what the terms come to.
                    let (mut most, mut all) = ([0f64; 2], [0f64; 2]);
                    for _ in 0..200 {
                        let (a, b) = (line(&mut random, k, kind), line(&mut random, k, kind));
                        let terms = || a.iter().zip(&b).map(|(a, b)| f64::from(*a) * f64::from(*b));
                        let (exact, size) = (terms().sum::<f64>(), terms().map(f64::abs).sum::<f64>());
                        let strict = a.iter().zip(&b).fold(0f32, |sum, (a, b)| a.mul_add(*b, sum));
                        for (i, got) in [strict, product(&a, &b, step)].into_iter().enumerate() {
                            let error = (f64::from(got) - exact).abs() / size;
                            most[i] = most[i].max(error);
                            all[i] += error;
                        }
                    }
                    let text = format!("{kind:?}, k = {k}, steps of {step}: {most:?}, {all:?}");
                    println!("{text}");
                    assert!(most[1] <= 2.0 * most[0] && all[1] <= 2.0 * all[0], "{text}");
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
        // What is zero, none or infinite has no low half.
        let (power, halves) = split(&[0.0, f32::INFINITY, -2.5]);
        assert_eq!((power, halves[0], halves[1]), (13, [0.0; 2], [f64::INFINITY, 0.0]));
        assert_eq!(halves[2], [-20480.0, 0.0]);
    }
}
