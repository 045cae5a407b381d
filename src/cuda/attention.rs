//! Attention on tensor cores: [`Attention`] of f16 or bf16; full, causal or windowed. `split-kv` also takes lengths,
//! pages and int8 caches.

use super::attention_split::{self, SPLIT_KV, SplitDivision};
use super::tile::{bandwidth, relative_rate};
use super::variant::choose;
use super::{
    Arch, Arg, ArgMemory, CudaKernel, CudaOp, CudaProfile, CudaProgram, CudaVariant, Launch, Swizzle, TensorMap,
};
use crate::attention::{Attention, KvType, Paging};
use crate::program::prelude::*;
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
    SPLIT_KV,
];

/// The largest head size of `wgmma`.
const WIDEST: usize = 128;
const TILE_KEYS: u32 = 128;
/// f16 FLOP/s of `wgmma` on full multiprocessors of an H100, of `mma`, and seconds of a kernel beside its waves.
const FLASH_RATES: [f64; 2] = [6.0e14, 2.4e14];
const FLASH_BEGUN: f64 = 4.0e-6;

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
            (
                self.kv.is_some_and(|kv| kv.dtype() != dtype && kv != KvType::Int8),
                "a key and value type other than int8 and that of q",
            ),
            (self.value_size != self.head_size, "a size of values other than that of keys"),
            (!self.head_size.is_multiple_of(8) || self.head_size > 256, "a head size other than 8, 16, ... 256"),
            (self.softcap.is_some(), "a softcap"),
            (self.scores.is_some(), "scores as a result"),
            (self.logsumexp, "logarithms of sums as a result"),
        ];
        let extra = extras.iter().find(|(asked, _)| *asked).map(|(_, what)| *what);
        if let Some(what) = extra.or(attention_split::refused(self)) {
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
        let cached = self.kv.filter(|kv| kv.is_scaled());
        let mut operands = self.operands(&name, dtype, cached.unwrap_or(KvType::F16))?;
        let stored = |name| ["k", "v"].contains(&name);
        operands.iter_mut().filter(|o| stored(o.name) && cached.is_none()).for_each(|o| o.dtype = dtype);
        let (variant, decision) = choose("attention", &self.variant, VARIANTS, profile, || self.policy(profile))?;
        let mut program = CudaProgram::new("attention", decision);
        program.cost = self.cost(&operands);
        program.operands = operands;
        if self.batch * self.heads * self.queries == 0 {
            return Ok(program);
        }
        if variant.name == SPLIT_KV.name {
            attention_split::lower(self, &name, dtype, &mut program, profile)?;
            program.check(profile).map_err(|e| e.context(&name))?;
            return Ok(program);
        }
        if self.has_cache() {
            return Err(err!(
                Unsupported,
                "{name}: the variant `{}` takes no lengths, pages or int8 cache; use `auto` or `split-kv`",
                variant.name
            ));
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
        args.extend([self.heads, self.kv_heads, self.queries, self.keys, self.head_size].map(|x| Arg::U32(x as u32)));
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
        if self.has_cache() {
            return (SPLIT_KV.name, "it takes lengths, pages and int8 caches".into());
        }
        let split = SplitDivision::new(self, profile).seconds;
        let flash = self.flash_seconds(profile);
        if split < flash {
            let [split, flash] = [split, flash].map(|s| s * 1e6);
            return (SPLIT_KV.name, format!("{split:.0} us predicted, {flash:.0} us with keys in one part"));
        }
        if profile.runs(Arch::Sm90a) && self.head_size <= WIDEST {
            ("wgmma", "warpgroup products are the fastest on Hopper".into())
        } else {
            ("mma", format!("heads of {} on sm_{}{}", self.head_size, profile.compute[0], profile.compute[1]))
        }
    }

    /// Returns whether keys and values are more than dense arrays of q's type.
    fn has_cache(&self) -> bool {
        self.lengths || self.paging.is_some() || self.kv.is_some_and(KvType::is_scaled)
    }

    /// Predicts the seconds of `wgmma` or `mma`: waves of blocks that walk over all keys, or the memory.
    fn flash_seconds(&self, profile: &CudaProfile) -> f64 {
        let hopper = profile.runs(Arch::Sm90a) && self.head_size <= WIDEST;
        let (rate, queries, resident) = if hopper { (FLASH_RATES[0], 128, 1) } else { (FLASH_RATES[1], 64, 2) };
        let processors = profile.multiprocessors as usize;
        let blocks = (self.queries.div_ceil(queries) * self.batch * self.heads) as f64;
        let head = self.head_size.next_multiple_of(64);
        let keys = self.keys.next_multiple_of(TILE_KEYS as usize);
        let rate = rate * relative_rate(profile) / (processors * resident) as f64;
        // Causal blocks see half of the keys on average.
        let part = if self.causal && self.queries > 1 {
            0.5 * (2.0 - self.queries as f64 / self.keys.max(self.queries) as f64)
        } else {
            1.0
        };
        let block = 4.0 * (queries * keys * head) as f64 * part / rate;
        let waves = (blocks / (processors * resident) as f64).ceil();
        let bytes = (4 * self.batch * self.kv_heads * self.keys * self.head_size) as f64;
        FLASH_BEGUN + (waves * block).max(bytes / (0.9 * bandwidth(profile)))
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
        for head in [48, 128, 256] {
            if head <= WIDEST || variant.name != "wgmma" {
                let op = Attention::new([1, 4, 70, head], [2, 90]).variant(variant.name);
                programs.push(CudaOp::<f16>::lower(&op, profile)?);
                programs.push(CudaOp::<bf16>::lower(&op.causal().window(9).scale(-1.0), profile)?);
            }
        }
    }
    if profile.runs(SPLIT_KV.arch) {
        let paging = Paging { tokens: 16, pages: 9 };
        for head in [48, 128, 256] {
            let op = Attention::new([2, 4, 1, head], [2, 1000]).lengths();
            programs.push(CudaOp::<f16>::lower(&op.clone().paged(paging), profile)?);
            programs.push(CudaOp::<bf16>::lower(&op.kv(KvType::Int8), profile)?);
            let op = Attention::new([2, 4, 3, head], [2, 1000]).kv(KvType::Int8).paged(paging);
            programs.push(CudaOp::<f16>::lower(&op, profile)?);
        }
    }
    Ok(programs)
}

#[cfg(test)]
mod tests;
