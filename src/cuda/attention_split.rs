//! The variant `split-kv` of attention: keys split over blocks, then their parts joined. For few queries, and for
//! caches with lengths, pages or signed bytes.

use super::tile::bandwidth;
use super::{Arch, Arg, CudaKernel, CudaProfile, CudaProgram, CudaVariant, Launch};
use crate::attention::{Attention, KvType};
use crate::program::prelude::*;

pub(super) const SPLIT_KV: CudaVariant = CudaVariant {
    name: "split-kv",
    about: "keys split over blocks of four warps, by mma instructions; with lengths, pages and int8 caches",
    arch: Arch::Sm80,
};

/// Rows of q of a block, its warps, and keys that a warp takes at a time.
const ROWS: usize = 16;
const WARPS: usize = 4;
const KEYS: usize = 16;
const ROUND: usize = WARPS * KEYS;
/// The most parts of the keys.
const MAX_PARTS: usize = 512;
/// Threads that join the parts of a row.
const JOINERS: u32 = 128;

/// Seconds of a round that has a multiprocessor to itself, of a block beside its rounds, and of joining parts.
const ROUND_ALONE: f64 = 0.55e-6;
const BLOCK: f64 = 1.5e-6;
const JOIN: f64 = 2.5e-6;
/// Seconds of a round some of whose keys only some queries see, beside the round's own: 97 causal queries of 97 keys
/// take 20 us, by `wgmma` 7 us.
const CAREFUL: f64 = 5.0e-6;
/// Bytes that a multiprocessor of an H100 loads in a second while others load little.
const LOADED: f64 = 40e9;

pub(super) struct SplitDivision {
    head: usize,
    stages: usize,
    shared: u32,
    row_tiles: usize,
    parts: usize,
    pub(super) seconds: f64,
}

impl SplitDivision {
    pub(super) fn new(op: &Attention, profile: &CudaProfile) -> Self {
        let head = match op.head_size {
            ..=64 => 64,
            65..=128 => 128,
            _ => 256,
        };
        let bytes = op.kv == Some(KvType::Int8);
        let size = if bytes { 1 } else { 2 };
        let stages = if head * size > 256 { 2 } else { 3 };
        let pitches = head * size + if bytes { 16 } else { 32 } + head * size + 16;
        let stage = KEYS * pitches + if bytes { 2 * KEYS * 4 } else { 0 };
        let tiles = ROWS * (2 * head + 32) + WARPS * stages * stage;
        let joined = WARPS * ROWS * (head + 4) * 4;
        let shared = tiles.max(joined);
        let rows = op.group() * op.queries;
        let row_tiles = rows.div_ceil(ROWS);
        let pairs = op.batch * op.kv_heads;
        // The keys that any row of a tile sees.
        let keys = op.window.map_or(op.keys, |w| op.keys.min(w.saturating_mul(2).saturating_add(op.queries)));
        let processors = profile.multiprocessors as usize;
        let block = shared + profile.shared_reserved_per_block as usize;
        let resident = (profile.shared_per_multiprocessor as usize / block).clamp(1, 3);
        let each = (2 * ROUND * op.head_size * size) as f64;
        // Keys at the edges of what the queries see.
        let edges = if op.queries > 1 && (op.causal || op.window.is_some()) { op.queries + KEYS } else { 0 };
        let careful = keys.min(edges).div_ceil(ROUND) as f64 * CAREFUL;
        let seconds = |parts: usize| {
            let blocks = (pairs * row_tiles * parts).max(1);
            let together = blocks.div_ceil(processors).min(resident);
            let rounds = keys.div_ceil(parts).div_ceil(ROUND) as f64;
            let waves = blocks.div_ceil(processors * resident) as f64;
            let share = 0.9 * bandwidth(profile) / blocks.min(processors) as f64;
            let round = (together as f64 * each / share.min(LOADED)).max(ROUND_ALONE);
            // Written and read through the second cache.
            let joined = (8 * pairs * rows * parts * op.head_size) as f64 / bandwidth(profile);
            waves * (rounds * round + careful + BLOCK) + if parts > 1 { JOIN + joined } else { 0.0 }
        };
        let most = keys.div_ceil(ROUND).clamp(1, MAX_PARTS);
        let by_time = |a: &usize, b: &usize| seconds(*a).total_cmp(&seconds(*b));
        let parts = (1..=most).min_by(by_time).unwrap_or(1);
        Self { head, stages, shared: shared as u32, row_tiles, parts, seconds: 1.0e-6 + seconds(parts) }
    }
}

/// Returns why the variant does not take the op, if so.
pub(super) fn refused(op: &Attention) -> Option<&'static str> {
    let bytes = op.kv == Some(KvType::Int8);
    (bytes && !op.head_size.is_multiple_of(16)).then_some("an int8 cache with a head size that is not a multiple of 16")
}

pub(super) fn lower(
    op: &Attention, name: &str, dtype: DType, program: &mut CudaProgram, profile: &CudaProfile,
) -> Result<()> {
    let division = SplitDivision::new(op, profile);
    let SplitDivision { head, stages, shared, row_tiles, parts, .. } = division;
    let kv_rows = op.paging.map_or(op.batch * op.kv_heads * op.keys, |p| p.pages * op.kv_heads * p.tokens);
    if kv_rows > i32::MAX as usize {
        return Err(err!(
            TooLarge,
            "{name}: {kv_rows} rows of keys; the variant `split-kv` counts at most {}; use fewer sequences in one call",
            i32::MAX
        ));
    }
    program.decision.because(format_args!(
        "{parts} parts of the keys for each of {} tiles of {ROWS} rows",
        row_tiles * op.batch * op.kv_heads
    ));
    let halves = |kernel: CudaKernel| {
        if dtype == DType::Bf16 { kernel.define("FACTOR_BF16", 1) } else { kernel }
    };
    let place = |name: &str| program.operands.iter().position(|o| o.name == name).map_or(Arg::Null, Arg::Operand);
    let [scales, table, lengths, output] = ["scales", "table", "lengths", "output"].map(place);
    let rows = op.batch * op.heads * op.queries;
    let [partials, statistics] = if parts > 1 {
        [4 * op.head_size, 8].map(|bytes| Arg::Scratch(program.scratch((rows * parts * bytes) as u64)))
    } else {
        [Arg::Null, Arg::Null]
    };
    let kernel = CudaKernel::new("attention/attention_decode", "attention_decode", Arch::Sm80)
        .define("HEAD", head)
        .define("STAGES", stages)
        .define("CAUSAL", u32::from(op.causal))
        .define("SINGLE", u32::from(op.queries == 1))
        .define("LENGTHS", u32::from(op.lengths))
        .define("PAGE", op.paging.map_or(0, |p| p.tokens))
        .define("CACHE_S8", u32::from(op.kv == Some(KvType::Int8)));
    let kernel = program.kernel(halves(kernel));
    let mut args: Vec<_> = (0..3).map(Arg::Operand).collect();
    args.extend([scales, table, lengths, output.clone(), partials.clone(), statistics.clone()]);
    let window = op.window.map_or(0, |w| w.min(op.keys + op.queries));
    let pages = op.paging.map_or(0, |p| p.pages);
    let numbers = [
        op.kv_heads,
        op.group(),
        op.queries,
        op.keys,
        op.head_size,
        window,
        pages,
        op.pages_each(),
        kv_rows,
        row_tiles,
        parts,
    ];
    args.extend(numbers.map(|x| Arg::U32(x as u32)));
    args.push(Arg::F32(op.factor()));
    let grid = [(row_tiles * parts) as u32, (op.batch * op.kv_heads) as u32, 1];
    program.launches.push(Launch { shared, ..Launch::new(kernel, grid, 32 * WARPS as u32, args) });
    if parts > 1 {
        let kernel = CudaKernel::new("attention/attention_join", "attention_join", Arch::Sm80)
            .define("COLUMNS", head / 4)
            .define("MAX_PARTS", MAX_PARTS);
        let kernel = program.kernel(halves(kernel));
        let mut args = vec![partials, statistics, output];
        args.extend([op.head_size, parts].map(|x| Arg::U32(x as u32)));
        program.launches.push(Launch::new(kernel, [rows as u32, 1, 1], JOINERS, args));
    }
    Ok(())
}
