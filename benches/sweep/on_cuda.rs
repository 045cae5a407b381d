//! The same on a CUDA device: the automatic choice, the variants of an op and, for products, tiles and slices of k.

use super::candidates::{Measured, call};
use super::shapes::{Drawn, Kind};
use super::support::{half, random_on_cuda};
use half::f16;
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use tilework::cuda::{CudaBuffer, CudaExecutable, CudaGpu, CudaOp, CudaProgram, CudaStream, RawCudaSlice};
use tilework::dense::{ProductTile, ThreadTile};
use tilework::prelude::*;
use tilework::program::DeviceProfile;
use tilework::{DType, Result};

/// Calls between two events, as `benches/peers/timing.py` has them, and measurements of which the median counts.
const CALLS: usize = 8;
const RUNS: usize = 9;

/// Tiles and warp tiles of products, and slices, that are tried.
const TILES: [[u32; 5]; 14] = [
    [128, 256, 64, 64, 64],
    [256, 128, 64, 64, 64],
    [128, 128, 64, 64, 64],
    [64, 128, 64, 32, 64],
    [64, 64, 64, 32, 32],
    [32, 32, 64, 32, 16],
    [16, 64, 64, 16, 16],
    [64, 16, 64, 16, 16],
    [16, 128, 64, 16, 32],
    [128, 16, 64, 32, 16],
    [32, 128, 64, 32, 32],
    [128, 32, 64, 32, 32],
    // Of warpgroups.
    [128, 128, 64, 0, 0],
    [128, 256, 64, 0, 0],
];
const SLICES: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// A way that is not measured yet.
struct CudaCandidate {
    shape: usize,
    name: String,
    program: CudaProgram,
    op: CudaWork,
}

/// The op, to plan it again.
#[derive(Clone)]
enum CudaWork {
    Gemm(Gemm),
    GemmBatched(GemmBatched),
    Attention(Attention),
}

impl CudaWork {
    fn of(profile: &DeviceProfile, kind: &Kind, drawn: &Drawn) -> Result<Option<Self>> {
        let Some(op) = tilework::operations().find(|op| op.name == kind.op) else { return Ok(None) };
        let call = call(profile, op, drawn, "auto", None)?;
        Ok(match kind.op {
            "gemm" => call.descriptor().cloned().map(Self::Gemm),
            "gemm-batched" => call.descriptor().cloned().map(Self::GemmBatched),
            "attention" => call.descriptor().cloned().map(Self::Attention),
            _ => None,
        })
    }

    fn lower(&self, cuda: &CudaGpu) -> Result<CudaProgram> {
        let profile = cuda.profile();
        match self {
            Self::Gemm(op) => CudaOp::<f16>::lower(op, profile),
            Self::GemmBatched(op) => CudaOp::<f16>::lower(op, profile),
            Self::Attention(op) => CudaOp::<f16>::lower(op, profile),
        }
    }

    fn plan(&self, cuda: &CudaGpu) -> Result<CudaExecutable> {
        Ok(match self {
            Self::Gemm(op) => op.plan::<f16>(cuda)?.into_executable(),
            Self::GemmBatched(op) => op.plan::<f16>(cuda)?.into_executable(),
            Self::Attention(op) => op.plan::<f16>(cuda)?.into_executable(),
        })
    }

    /// The automatic choice, and others by name.
    fn all(&self, tiles: bool) -> Vec<(String, Self)> {
        let mut all = vec![("auto".to_owned(), self.clone())];
        match self {
            Self::Gemm(op) => {
                for variant in ["mma", "wgmma"] {
                    all.push((variant.into(), Self::Gemm(op.clone().variant(variant))));
                }
                for ([m, n, k, rows, columns], slices) in
                    TILES.iter().filter(|_| tiles).flat_map(|tile| SLICES.map(|s| (*tile, s)))
                {
                    let variant = if rows == 0 { "wgmma" } else { "mma" };
                    let op = op.clone().variant(variant).tile(ProductTile { m, n, k }).slices(slices);
                    let op = if rows == 0 { op } else { op.thread_tile(ThreadTile { rows, columns }) };
                    all.push((format!("{variant} {m}x{n}x{k} in {slices}"), Self::Gemm(op)));
                }
            }
            Self::GemmBatched(op) => {
                for variant in ["mma", "wgmma"] {
                    all.push((variant.into(), Self::GemmBatched(op.clone().variant(variant))));
                }
            }
            Self::Attention(op) => {
                for variant in Attention::cuda_variants() {
                    all.push((variant.name.into(), Self::Attention(op.clone().variant(variant.name))));
                }
            }
        }
        all
    }
}

/// Measures all shapes: the automatic choice first, then all that differ from it. Kernels are compiled before, on all
/// processors.
pub(crate) fn measure(
    cuda: &CudaGpu, profile: &DeviceProfile, drawn: &[(&Kind, Drawn)], tiles: bool,
) -> Result<Vec<Vec<Measured>>> {
    let mut all = Vec::new();
    for (shape, (kind, drawn)) in drawn.iter().enumerate() {
        let Some(work) = CudaWork::of(profile, kind, drawn)? else { continue };
        let mut seen = HashSet::new();
        for (name, op) in work.all(tiles) {
            let Ok(program) = op.lower(cuda) else { continue };
            if seen.insert(format!("{:?} {:?}", program.kernels, program.launches)) {
                all.push(CudaCandidate { shape, name, program, op });
            }
        }
    }
    let begin = std::time::Instant::now();
    let next = AtomicUsize::new(0);
    let planned = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((i, way)) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| all.get(i).map(|w| (i, w)))
                {
                    let plan = way.op.plan(cuda);
                    planned.lock().unwrap_or_else(PoisonError::into_inner).push((i, plan));
                }
            });
        }
    });
    let mut planned = planned.into_inner().unwrap_or_else(PoisonError::into_inner);
    planned.sort_by_key(|(i, _)| *i);
    println!("{} ways planned in {:.1} s", planned.len(), begin.elapsed().as_secs_f64());
    let stream = cuda.stream()?;
    let mut measured: Vec<Vec<Measured>> = drawn.iter().map(|_| Vec::new()).collect();
    let mut operands: (usize, Vec<CudaOperand>) = (usize::MAX, Vec::new());
    for (way, (_, plan)) in all.iter().zip(planned) {
        let plan = plan?;
        if operands.0 != way.shape {
            operands = (way.shape, Vec::new());
            let each = way.program.operands.iter().map(|o| CudaOperand::new(cuda, o.dtype, o.len));
            operands.1 = each.collect::<Result<_>>()?;
        }
        let raw = operands.1.iter().map(CudaOperand::raw).collect::<Result<Vec<_>>>()?;
        let seconds = time(&stream, &plan, &raw)?;
        let name = if way.name == "auto" { format!("auto: {}", way.program.variant()) } else { way.name.clone() };
        let why = way.program.decision.why.clone();
        measured[way.shape].push(Measured { name, why, seconds, accurate: true });
    }
    Ok(measured)
}

/// The median of several measurements of [`CALLS`] calls, each by one call.
fn time(stream: &CudaStream, plan: &CudaExecutable, operands: &[RawCudaSlice<'_>]) -> Result<f64> {
    let once = || {
        let begin = stream.record()?;
        (0..CALLS).try_for_each(|_| plan.run(stream, operands))?;
        Ok::<_, tilework::Error>(stream.record()?.seconds_since(&begin)? / CALLS as f64)
    };
    once()?;
    let mut seconds = (0..RUNS).map(|_| once()).collect::<Result<Vec<_>>>()?;
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[RUNS / 2])
}

/// A buffer with contents.
enum CudaOperand {
    Half(CudaBuffer<f16>),
    Words(CudaBuffer<u32>),
}

impl CudaOperand {
    fn new(cuda: &CudaGpu, dtype: DType, n: usize) -> Result<Self> {
        Ok(match dtype {
            DType::F16 => Self::Half(random_on_cuda(cuda, n, half)?),
            _ => Self::Words(random_on_cuda(cuda, n, |bits| bits)?),
        })
    }

    fn raw(&self) -> Result<RawCudaSlice<'_>> {
        Ok(match self {
            Self::Half(buffer) => buffer.slice(..)?.untyped(),
            Self::Words(buffer) => buffer.slice(..)?.untyped(),
        })
    }
}
