//! Attention.

mod support;

#[cfg(feature = "cuda")]
use half::bf16;
use half::f16;
#[cfg(feature = "cuda")]
use support::Case;
#[cfg(feature = "cuda")]
use support::random_on_cuda;
use support::{Bench, Operand, centred, half, random};
use tilework::attention::{Attention, AttentionBackward, CoopTile, FlashTile, KvAppend, KvType};
#[cfg(feature = "cuda")]
use tilework::cuda::CudaOp;
#[cfg(feature = "cuda")]
use tilework::prelude::*;
use tilework::program::Op;
use tilework::{Element, Result};

fn main() -> Result<()> {
    support::groups(&[
        ("attention", attention),
        ("attention-window", window),
        ("attention-decode", decode),
        ("attention-backward", backward),
        ("kv-append", append),
        ("attention-flash-tiles", flash_tiles),
        ("attention-coop-tiles", coop_tiles),
    ])
}

/// Measures ops on the same operands, whose sizes the first op gives.
fn several<T: Element>(
    bench: &mut Bench, size: &str, ops: &[(String, Attention)], value: impl Fn(u32) -> T,
) -> Result<()>
where
    Attention: Op<T>,
{
    let Some((_, first)) = ops.first() else { return Ok(()) };
    let gpu = bench.gpu.clone();
    let program = Op::<T>::lower(first, gpu.profile())?;
    let len = |i: usize| program.operands[i].len;
    let (q, k, v) = (random(&gpu, len(0), &value)?, random(&gpu, len(1), &value)?, random(&gpu, len(2), &value)?);
    let output = gpu.alloc::<T>(len(0))?;
    for (variant, op) in ops {
        let variant = if variant == "auto" { "" } else { variant };
        bench.op_as::<T>(op, (variant, ""), size, &[&q, &k, &v, &output])?;
    }
    Ok(())
}

/// Lists variants of an op with their names.
fn named(op: &Attention, variants: &[&str]) -> Vec<(String, Attention)> {
    variants.iter().map(|v| ((*v).to_owned(), op.clone().variant(v))).collect()
}

/// Prompts: as many queries as keys.
fn attention(bench: &mut Bench) -> Result<()> {
    let (batch, heads, t) = bench.scale((4, 16, 4096), (1, 2, 128));
    for (d, variants) in [(64, &["naive", "flash"][..]), (128, &["flash"])] {
        let op = Attention::new([batch, heads, t, d], [heads, t]);
        let size = format!("B{batch} H{heads} T{t} D{d}");
        several::<f32>(bench, &size, &named(&op, variants), centred)?;
        several::<f16>(bench, &size, &named(&op, &["auto"]), half)?;
    }
    let op = Attention::new([batch, heads, t, 64], [heads, t]).causal();
    let size = format!("B{batch} H{heads} T{t} D64 causal");
    several::<f32>(bench, &size, &named(&op, &["flash"]), centred)?;
    several::<f16>(bench, &size, &named(&op, &["auto"]), half)?;
    #[cfg(feature = "cuda")]
    for d in [64, 128] {
        let op = Attention::new([batch, heads, t, d], [heads, t]);
        let size = format!("B{batch} H{heads} T{t} D{d}");
        on_cuda::<f16>(bench, &size, &op, half)?;
        on_cuda::<bf16>(bench, &size, &op, |bits| bf16::from_f32(centred(bits)))?;
        on_cuda::<f16>(bench, &format!("{size} causal"), &op.causal(), half)?;
    }
    Ok(())
}

/// Every variant on CUDA.
#[cfg(feature = "cuda")]
fn on_cuda<T: Element>(bench: &mut Bench, size: &str, op: &Attention, value: impl Fn(u32) -> T) -> Result<()>
where
    Attention: CudaOp<T>,
{
    let Some(cuda) = bench.cuda.clone() else { return Ok(()) };
    let stream = cuda.stream()?;
    for variant in Attention::cuda_variants().iter().filter(|v| cuda.profile().runs(v.arch)) {
        let plan = op.clone().variant(variant.name).plan::<T>(&cuda)?;
        let program = plan.program();
        let random = |i: usize| random_on_cuda(&cuda, program.operands[i].len, &value);
        let (q, k, v, output) = (random(0)?, random(1)?, random(2)?, random(3)?);
        let (dtype, cost) = (T::DTYPE.name(), program.cost);
        let case = Case { op: "attention", variant: variant.name, dtype, size: size.into(), cost };
        bench.stream(&case, &stream, |stream| plan.run(stream, &q, &k, &v, &output));
    }
    Ok(())
}

/// Windows: the time should grow with the number of queries and with the window, not with the keys.
fn window(bench: &mut Bench) -> Result<()> {
    let (longest, heads) = bench.scale((32768, 16), (512, 1));
    for (t, w) in [(longest / 4, 512), (longest / 2, 512), (longest, 256), (longest, 512), (longest, 1024)] {
        let op = Attention::new([1, heads, t, 64], [heads, t]).causal().window(w);
        several::<f32>(bench, &format!("B1 H{heads} T{t} D64 window {w}"), &named(&op, &["flash"]), centred)?;
    }
    Ok(())
}

/// One query against a cache.
fn decode(bench: &mut Bench) -> Result<()> {
    for (batch, keys) in bench.scale([(16, 8192), (1, 131_072)], [(2, 512), (1, 2048)]) {
        let op = Attention::new([batch, 32, 1, 128], [8, keys]);
        several::<f16>(bench, &format!("B{batch} H32 G8 S{keys} D128 decode"), &named(&op, &["split-kv"]), half)?;
    }
    Ok(())
}

/// A prompt, and one token of each sequence, behind what caches of each type hold.
fn append(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let (heads, keys, d) = bench.scale((8, 8192, 128), (2, 128, 32));
    for (batch, tokens) in bench.scale([(16, 1), (1, 4096)], [(2, 1), (1, 64)]) {
        let new = random(&gpu, batch * heads * tokens * d, half)?;
        let lengths = gpu.upload(&vec![(keys / 2) as u32; batch])?;
        let size = format!("B{batch} H{heads} T{tokens} S{keys} D{d}");
        let rows = batch * heads * keys;
        let (k, v) = (gpu.alloc::<f16>(rows * d)?, gpu.alloc::<f16>(rows * d)?);
        let (codes_k, codes_v) = (gpu.alloc::<i8>(rows * d)?, gpu.alloc::<i8>(rows * d)?);
        let scales = gpu.alloc::<f32>(2 * rows)?;
        let op = KvAppend::new([batch, heads, tokens, d], keys);
        bench.op::<f16>(&op, &size, &[&new, &new, &lengths, &k, &v])?;
        let op = op.kv(KvType::Int8);
        let operands: [&dyn Operand; 6] = [&new, &new, &lengths, &codes_k, &codes_v, &scales];
        bench.op::<f16>(&op, format!("{size} int8"), &operands)?;
    }
    Ok(())
}

/// Gradients of prompts.
fn backward(bench: &mut Bench) -> Result<()> {
    fn one<T: Element>(bench: &mut Bench, size: &str, ops: &[AttentionBackward], value: impl Fn(u32) -> T) -> Result<()>
    where
        AttentionBackward: Op<T>,
    {
        let gpu = bench.gpu.clone();
        let program = Op::<T>::lower(&ops[0], gpu.profile())?;
        let given = program.operands.iter().map(|operand| random(&gpu, operand.len, &value));
        let all = given.collect::<Result<Vec<_>>>()?;
        let operands: Vec<&dyn support::Operand> = all.iter().map(|x| x as &dyn support::Operand).collect();
        ops.iter().try_for_each(|op| bench.op::<T>(op, size, &operands))
    }
    /// With what the forward pass saves, as frameworks keep it.
    fn saved<T: Element>(bench: &mut Bench, size: &str, op: &AttentionBackward, value: fn(u32) -> T) -> Result<()>
    where
        AttentionBackward: Op<T>,
    {
        let (gpu, op) = (bench.gpu.clone(), op.clone().saved());
        let program = Op::<T>::lower(&op, gpu.profile())?;
        let operand = |at: usize| -> Result<Box<dyn support::Operand>> {
            let operand = &program.operands[at];
            Ok(match operand.name {
                "logsumexp" => Box::new(random(&gpu, operand.len, |bits| 8.0 + centred(bits))?),
                _ => Box::new(random(&gpu, operand.len, value)?),
            })
        };
        let all = (0..program.operands.len()).map(operand).collect::<Result<Vec<_>>>()?;
        let operands: Vec<&dyn support::Operand> = all.iter().map(|x| &**x).collect();
        bench.op_as::<T>(&op, (&format!("{} saved", program.variant()), ""), size, &operands)
    }
    let (batch, heads, t) = bench.scale((4, 16, 4096), (1, 2, 128));
    for d in [64, 128] {
        let op = AttentionBackward::new([batch, heads, t, d], [heads, t]);
        let size = format!("B{batch} H{heads} T{t} D{d}");
        let named = |op: &AttentionBackward| ["flash", "stored"].map(|variant| op.clone().variant(variant));
        one::<f32>(bench, &size, &named(&op), centred)?;
        one::<f32>(bench, &format!("{size} causal"), &named(&op.clone().causal()), centred)?;
        saved::<f32>(bench, &size, &op, centred)?;
        saved::<f32>(bench, &format!("{size} causal"), &op.clone().causal(), centred)?;
        let ways = |op: &AttentionBackward| [op.clone(), op.clone().variant("coop")];
        for (op, size) in [(op.clone(), size.clone()), (op.causal(), format!("{size} causal"))] {
            for op in ways(&op) {
                saved::<f16>(bench, &size, &op, half)?;
            }
            one::<f16>(bench, &size, &ways(&op), half)?;
        }
        for t in [t / 4, t / 8, t / 16] {
            let op = AttentionBackward::new([batch, heads, t, d], [heads, t]);
            one::<f32>(bench, &format!("B{batch} H{heads} T{t} D{d}"), &named(&op), centred)?;
        }
    }
    // `naive` takes minutes at full size.
    let t = t / 8;
    let op = AttentionBackward::new([batch, heads, t, 64], [heads, t]).variant("naive");
    one::<f32>(bench, &format!("B{batch} H{heads} T{t} D64"), &[op], centred)
}

/// Tiles of `flash`.
fn flash_tiles(bench: &mut Bench) -> Result<()> {
    let (batch, heads, t) = bench.scale((4, 16, 4096), (1, 2, 128));
    let one = |[rows, keys, lanes, thread_rows]: [u32; 4], [dims, weights, values]: [u32; 3], ahead| FlashTile {
        rows,
        keys,
        lanes,
        thread_rows,
        dims,
        weights,
        values,
        ahead,
    };
    let tile = |sides, staged| one(sides, staged, false);
    let ahead = |sides, staged| one(sides, staged, true);
    let of_64 = [
        tile([128, 64, 8, 8], [32, 32, 32]),
        tile([128, 64, 8, 8], [32, 32, 16]),
        tile([128, 64, 8, 8], [16, 32, 16]),
        tile([64, 64, 8, 8], [32, 32, 32]),
        tile([256, 64, 8, 8], [32, 32, 32]),
        tile([128, 128, 16, 8], [32, 64, 32]),
        ahead([128, 64, 8, 8], [16, 32, 16]),
        ahead([128, 64, 8, 8], [32, 32, 32]),
        ahead([64, 64, 8, 8], [32, 32, 32]),
        ahead([128, 128, 16, 8], [32, 64, 32]),
    ];
    let of_128 = [
        tile([64, 64, 16, 8], [32, 64, 16]),
        tile([64, 64, 16, 8], [32, 64, 8]),
        tile([64, 64, 16, 8], [16, 64, 16]),
        tile([128, 128, 16, 8], [32, 64, 16]),
        tile([64, 64, 8, 4], [32, 64, 16]),
        tile([64, 64, 8, 4], [32, 32, 32]),
        tile([128, 64, 8, 8], [32, 32, 16]),
        tile([64, 64, 8, 8], [32, 32, 16]),
        tile([64, 32, 8, 8], [32, 32, 16]),
        tile([64, 64, 16, 4], [32, 64, 16]),
        ahead([64, 64, 16, 8], [32, 64, 16]),
        ahead([64, 64, 16, 8], [16, 64, 8]),
        ahead([128, 128, 16, 8], [32, 64, 16]),
    ];
    for (d, tiles) in [(64, &of_64[..]), (128, &of_128)] {
        let op = Attention::new([batch, heads, t, d], [heads, t]).variant("flash");
        let of = |tile: &FlashTile| {
            let FlashTile { rows, keys, lanes, thread_rows, dims, weights, values, ahead } = tile;
            let ahead = if *ahead { " ahead" } else { "" };
            let label = format!("flash {rows}x{keys} {lanes}x{thread_rows} {dims},{weights},{values}{ahead}");
            (label, op.clone().tile(*tile))
        };
        // Tiles that fit the device.
        let fits = |(_, op): &(String, Attention)| Op::<f32>::lower(op, bench.gpu.profile()).is_ok();
        let ops: Vec<_> = tiles.iter().map(of).filter(fits).collect();
        several::<f32>(bench, &format!("B{batch} H{heads} T{t} D{d}"), &ops, centred)?;
    }
    Ok(())
}

/// Tiles of `coop`: subgroups, rows per subgroup, keys.
fn coop_tiles(bench: &mut Bench) -> Result<()> {
    let (batch, heads, t) = bench.scale((4, 16, 4096), (1, 2, 128));
    for d in [64, 128] {
        let op = Attention::new([batch, heads, t, d], [heads, t]).variant("coop");
        let tiles = [
            [4, 32, 32],
            [4, 32, 16],
            [2, 32, 32],
            [8, 16, 32],
            [4, 16, 32],
            [4, 16, 64],
            [8, 16, 16],
            [8, 16, 64],
            [8, 16, 48],
            [4, 32, 48],
            [2, 32, 16],
            [8, 32, 16],
            [4, 16, 16],
            [16, 16, 16],
            [16, 16, 32],
            [4, 32, 64],
        ];
        let of = |[teams, rows, keys]: [u32; 3]| {
            (format!("coop {teams}x{rows} {keys}"), op.clone().coop_tile(CoopTile { teams, rows, keys }))
        };
        // Tiles that fit the device.
        let fits = |(_, op): &(String, Attention)| Op::<f16>::lower(op, bench.gpu.profile()).is_ok();
        let ops: Vec<_> = tiles.map(of).into_iter().filter(fits).collect();
        several::<f16>(bench, &format!("B{batch} H{heads} T{t} D{d}"), &ops, half)?;
    }
    Ok(())
}
