//! Attention.

mod support;

use half::f16;
use support::{Bench, Case, centred, random};
use tilework::attention::{Attended, Attention};
use tilework::prelude::*;
use tilework::program::Op;
use tilework::{AttentionExtras, Element, Result};

/// The cases of some ops.
type Group = fn(&mut Bench) -> Result<()>;

fn main() -> Result<()> {
    let Some(mut bench) = Bench::open() else { return Ok(()) };
    let groups: [(&str, Group); 1] = [("attention", attention)];
    for (name, group) in groups {
        if bench.wants(name) {
            group(&mut bench)?;
        }
    }
    bench.finish();
    Ok(())
}

/// Measures some variants of an op whose keys and values are of the type of q.
fn one<T: Element>(
    bench: &mut Bench,
    op: &Attention,
    size: &str,
    variants: &[&str],
    value: impl Fn(u32) -> T,
) -> Result<()>
where
    Attention: Op<T, Operands = Attended<T>>,
{
    let gpu = bench.gpu.clone();
    let program = Op::<T>::lower(op, gpu.profile())?;
    let len = |i: usize| program.operands[i].len;
    let (q, k, v) =
        (random(&gpu, len(0), &value)?, random(&gpu, len(1), &value)?, random(&gpu, len(2), &value)?);
    let output = gpu.alloc::<T>(len(0))?;
    for variant in variants {
        let plan = op.clone().variant(variant).plan::<T>(&gpu)?;
        let dtype = T::DTYPE.name();
        let case = Case { op: "attention", variant, dtype, size: size.into(), cost: plan.program().cost };
        bench.device(&case, |rec| plan.record(rec, &q, &k, &v, AttentionExtras::new(), &output))?;
    }
    Ok(())
}

fn half_of(bits: u32) -> f16 {
    f16::from_f32(centred(bits))
}

/// Prompts: as long as what they see.
fn attention(bench: &mut Bench) -> Result<()> {
    let (batch, heads, t) = bench.scale((4, 16, 4096), (1, 2, 128));
    for d in [64, 128] {
        let op = Attention::new(batch, heads, heads, t, t, d);
        let size = format!("B{batch} H{heads} T{t} D{d}");
        one::<f32>(bench, &op, &size, &["auto"], centred)?;
        one::<f16>(bench, &op, &size, &["auto"], half_of)?;
    }
    let (op, size) = (Attention::new(batch, heads, heads, t, t, 64), format!("B{batch} H{heads} T{t} D64"));
    one::<f32>(bench, &op, &size, &["naive"], centred)?;
    one::<f32>(bench, &op.clone().causal(), &format!("{size} causal"), &["auto"], centred)?;
    one::<f16>(bench, &op.causal(), &format!("{size} causal"), &["auto"], half_of)
}
