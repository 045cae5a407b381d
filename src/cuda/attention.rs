//! Attention on tensor cores: [`Attention`] of f16 or bf16 with dense keys and values; full, causal or windowed.

use super::variant::choose;
use super::{
    Arch, Arg, ArgMemory, CudaKernel, CudaOp, CudaProfile, CudaProgram, CudaVariant, Launch, Swizzle,
    TensorMap,
};
use crate::attention::{Attention, KvType};
use crate::element::{DType, Element};
use crate::error::{Result, err};
use half::{bf16, f16};

const VARIANTS: &[CudaVariant] = &[
    CudaVariant {
        name: "mma",
        about: "FlashAttention by mma instructions; tiles are copied asynchronously during products",
        arch: Arch::Sm80,
    },
    CudaVariant {
        name: "wgmma",
        about: "FlashAttention by warpgroup products on Hopper, fed by the bulk copy engine; heads up to 128",
        arch: Arch::Sm90a,
    },
];

/// The largest head size of `wgmma`.
const WIDEST: usize = 128;
/// Keys of a tile of `wgmma`.
const TILE_KEYS: u32 = 128;

impl Attention {
    /// Lists the CUDA variants.
    pub fn cuda_variants() -> &'static [CudaVariant] {
        VARIANTS
    }

    fn lower_on_cuda(&self, dtype: DType, profile: &CudaProfile) -> Result<CudaProgram> {
        let name = self.name("attention");
        self.check(&name)?;
        let extras = [
            (self.mask.is_some(), "a mask"),
            (self.lengths, "a length for each sequence"),
            (self.paging.is_some(), "a paged cache"),
            (self.kv.is_some_and(|kv| kv.dtype() != dtype), "a key and value type other than that of q"),
            (self.value_size != self.head_size, "a size of values other than that of keys"),
            (
                !self.head_size.is_multiple_of(8) || self.head_size > 256,
                "a head size other than 8, 16, ... 256",
            ),
            (self.softcap.is_some(), "a softcap"),
            (self.scores.is_some(), "scores as a result"),
            (self.logsumexp, "logarithms of sums as a result"),
        ];
        if let Some((_, what)) = extras.iter().find(|(asked, _)| *asked) {
            return Err(err!(Unsupported, "{name}: {what} is not supported on CUDA; plan it on a `Gpu`"));
        }
        let max = i32::MAX as usize / 4;
        if self.queries.max(self.keys) > max || self.batch * self.heads > 65535 {
            return Err(err!(
                TooLarge,
                "{name}: CUDA allows at most {max} queries and keys, and 65535 heads over all sequences; use fewer sequences \
                 in one call"
            ));
        }
        let mut operands = self.operands(&name, dtype, KvType::F16)?;
        operands.iter_mut().for_each(|o| o.dtype = dtype);
        let (variant, decision) =
            choose("attention", &self.variant, VARIANTS, profile, || self.policy(profile))?;
        let mut program = CudaProgram::new("attention", decision);
        program.cost = self.cost(&operands);
        program.operands = operands;
        if self.batch * self.heads * self.queries == 0 {
            return Ok(program);
        }
        let (kernel, queries, launch) = match variant.name {
            "wgmma" if self.head_size > WIDEST => {
                return Err(err!(
                    Unsupported,
                    "{name}: the variant `wgmma` takes heads of at most {WIDEST}; use `mma`, which takes 256"
                ));
            }
            // A tensor map has no extent of 0.
            "wgmma" if self.keys > 0 => self.wgmma(dtype),
            _ => self.mma(),
        };
        let kernel = kernel.define("CAUSAL", u32::from(self.causal));
        let kernel = if dtype == DType::Bf16 { kernel.define("FACTOR_BF16", 1) } else { kernel };
        // Kernels scale by a positive factor.
        let kernel = kernel.define("NEGATIVE", u32::from(self.factor() < 0.0));
        let kernel = program.kernel(kernel);
        let grid = [self.queries.div_ceil(queries as usize), self.batch * self.heads, 1].map(|x| x as u32);
        let mut args = launch.args;
        args.push(Arg::Operand(3));
        args.extend(
            [self.heads, self.kv_heads, self.queries, self.keys, self.head_size].map(|x| Arg::U32(x as u32)),
        );
        // A window of keys + queries has no effect; 0 is no window.
        args.push(Arg::U32(self.window.map_or(0, |w| w.min(self.keys + self.queries)) as u32));
        // Not 0, because 0 * -infinity is NaN.
        args.push(Arg::F32(self.factor().abs().max(f32::MIN_POSITIVE)));
        program.launches.push(Launch { kernel, grid, args, ..launch });
        program.check(profile).map_err(|e| e.context(&name))?;
        Ok(program)
    }

    /// Returns the variant that suits, and why.
    fn policy(&self, profile: &CudaProfile) -> (&'static str, String) {
        if profile.runs(Arch::Sm90a) && self.head_size <= WIDEST {
            ("wgmma", "warpgroup products are the fastest on Hopper".into())
        } else {
            ("mma", format!("heads of {} on sm_{}{}", self.head_size, profile.compute[0], profile.compute[1]))
        }
    }

    /// Returns the kernel, the queries of a block, and the launch without grid and numbers.
    fn wgmma(&self, dtype: DType) -> (CudaKernel, u32, Launch) {
        let head = if self.head_size <= 64 { 64 } else { 128 };
        // H100, 4096 and 16384 queries: two warpgroups for heads of 128, three for heads of 64. Taking turns is faster,
        // except for causal heads of 64.
        let consumers = if head == 64 { 3 } else { 2 };
        let turns = head == 128 || !self.causal;
        let (stages, queries) = (2, 64 * consumers);
        let kernel = CudaKernel::new("attention/attention_wgmma", "attention_wgmma", Arch::Sm90a)
            .define("HEAD", head)
            .define("CONSUMERS", consumers)
            .define("STAGES", stages)
            .define("TURNS", u32::from(turns));
        let of = |operand: usize, heads: usize, rows: usize, tile: u32| {
            let row = 2 * self.head_size as u64;
            Arg::Tensor(TensorMap {
                of: ArgMemory::Operand(operand),
                offset: 0,
                dtype,
                rounds_to_tf32: false,
                dims: [self.head_size, rows, self.batch * heads].map(|d| d as u64).into(),
                strides: vec![row, row * rows as u64],
                box_dims: vec![64, tile, 1],
                swizzle: Swizzle::B128,
            })
        };
        let args = vec![
            of(0, self.heads, self.queries, queries),
            of(1, self.kv_heads, self.keys, TILE_KEYS),
            of(2, self.kv_heads, self.keys, TILE_KEYS),
        ];
        let tiles = 2 * head * (queries + 2 * stages * TILE_KEYS);
        // Results are written out through 16 rows of 72 for each warp.
        let shared = tiles + 4 * consumers * 16 * 72 * 2;
        (kernel, queries, Launch { shared, ..Launch::new(0, [1; 3], 128 * (consumers + 1), args) })
    }

    fn mma(&self) -> (CudaKernel, u32, Launch) {
        let (head, keys) = match self.head_size {
            ..=64 => (64, 64),
            65..=128 => (128, 64),
            _ => (256, 32),
        };
        let kernel = CudaKernel::new("attention/attention_mma", "attention_mma", Arch::Sm80)
            .define("HEAD", head)
            .define("KEYS", keys);
        let queries = 64;
        let shared = (queries + 4 * keys) * (head + 8) * 2;
        let args = (0..3).map(Arg::Operand).collect();
        (kernel, queries, Launch { shared, ..Launch::new(0, [1; 3], 128, args) })
    }
}

macro_rules! op {
    ($($t:ty),*) => {$(
        impl CudaOp<$t> for Attention {
            fn lower(&self, profile: &CudaProfile) -> Result<CudaProgram> {
                self.lower_on_cuda(<$t>::DTYPE, profile)
            }
        }
    )*};
}
op!(f16, bf16);

/// Returns programs that together use every kernel of the device, in every form.
pub(super) fn samples(profile: &CudaProfile) -> Result<Vec<CudaProgram>> {
    let mut programs = Vec::new();
    for variant in VARIANTS.iter().filter(|v| profile.runs(v.arch)) {
        for head in [40, 128, 256] {
            if head <= WIDEST || variant.name != "wgmma" {
                let op = Attention::new([1, 4, 70, head], [2, 90]).variant(variant.name);
                programs.push(CudaOp::<f16>::lower(&op, profile)?);
                programs.push(CudaOp::<bf16>::lower(&op.causal().window(9).scale(-1.0), profile)?);
            }
        }
    }
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use crate::attention::{Paging, ScoreStage};

    #[test]
    fn samples_are_valid() {
        for (profile, count) in
            [(CudaProfile::sm(75), 0), (CudaProfile::sm(80), 6), (CudaProfile::h100(), 10)]
        {
            let programs = samples(&profile).unwrap();
            assert_eq!(programs.len(), count);
            for program in programs {
                program.check(&profile).unwrap();
            }
        }
    }

    #[test]
    fn head_size_and_device_determine_the_variant() {
        let of = |head, profile: &CudaProfile| {
            CudaOp::<f16>::lower(&Attention::new([2, 8, 100, head], [2, 300]), profile)
                .map(|p| (p.variant(), p.launches[0].grid))
        };
        assert_eq!(of(128, &CudaProfile::h100()).unwrap(), ("wgmma", [1, 16, 1]));
        assert_eq!(of(64, &CudaProfile::h100()).unwrap(), ("wgmma", [1, 16, 1]));
        assert_eq!(of(256, &CudaProfile::h100()).unwrap(), ("mma", [2, 16, 1]));
        assert_eq!(of(64, &CudaProfile::sm(80)).unwrap(), ("mma", [2, 16, 1]));
        let none = Attention::new([2, 8, 0, 64], [2, 300]);
        assert!(CudaOp::<f16>::lower(&none, &CudaProfile::h100()).unwrap().launches.is_empty());
        assert_eq!(of(64, &CudaProfile::sm(75)).unwrap_err().kind(), ErrorKind::Unsupported);
    }

    #[test]
    fn unsupported_options_name_the_remedy() {
        let refusal = |op: Attention| {
            let e = CudaOp::<f16>::lower(&op, &CudaProfile::h100()).unwrap_err();
            (e.kind(), e.to_string())
        };
        let op = Attention::new([1, 2, 8, 64], [2, 8]);
        for op in [
            op.clone().masked([1, 1]),
            op.clone().lengths(),
            op.clone().paged(Paging { tokens: 16, pages: 4 }),
            op.clone().kv(KvType::Int8),
            op.clone().value_size(32),
            op.clone().softcap(2.0),
            op.clone().scores(ScoreStage::Weights),
            Attention::new([1, 2, 8, 36], [2, 8]),
        ] {
            let (kind, text) = refusal(op);
            assert!(kind == ErrorKind::Unsupported && text.contains("plan it on a `Gpu`"), "{text}");
        }
        let (kind, text) = refusal(Attention::new([1, 2, 8, 256], [2, 8]).variant("wgmma"));
        assert!(kind == ErrorKind::Unsupported && text.contains("use `mma`"), "{text}");
        let (kind, _) = refusal(Attention::new([70000, 1, 1, 8], [1, 1]));
        assert_eq!(kind, ErrorKind::TooLarge);
        let (kind, text) = refusal(op.variant("flash"));
        assert!(kind == ErrorKind::InvalidArgument && text.contains("auto, mma, wgmma"), "{text}");
    }
}
