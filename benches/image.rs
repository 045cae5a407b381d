//! Images of bytes.

mod support;

use support::{Bench, Case, random};
use tilework::Result;
use tilework::prelude::*;

/// The cases of an op.
type Group = fn(&mut Bench) -> Result<()>;

fn main() -> Result<()> {
    let Some(mut bench) = Bench::open() else { return Ok(()) };
    let groups: [(&str, Group); 2] = [("grey", grey), ("blur", blur)];
    for (name, group) in groups {
        if bench.wants(name) {
            group(&mut bench)?;
        }
    }
    bench.finish();
    Ok(())
}

fn grey(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    for side in bench.scale(vec![1024, 8192, 8191], vec![512]) {
        let (x, y) = (random(&gpu, 3 * side * side, |b| b as u8)?, gpu.alloc::<u8>(side * side)?);
        for v in Grey::variants() {
            let plan = Grey::new(side, side).variant(v.name).plan::<u8>(&gpu)?;
            let (size, cost) = (format!("{side}x{side}"), plan.program().cost);
            let case = Case { op: "grey", variant: v.name, dtype: "u8", size, cost };
            bench.device(&case, |rec| plan.record(rec, &x, &y));
        }
    }
    Ok(())
}

fn blur(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    let cases = [(8192, 1), (8192, 2), (8192, 4), (8192, 8), (8192, 16), (8192, 64), (8191, 2)];
    let cases = bench.scale(cases.to_vec(), vec![(512, 1), (512, 8)]);
    let most = cases.iter().map(|c| c.0).max().unwrap_or(0usize).pow(2);
    let (x, y) = (random(&gpu, most, |b| b as u8)?, gpu.alloc::<u8>(most)?);
    for (side, radius) in cases {
        for v in Blur::variants() {
            // One that does not fit the radius is left out.
            let Ok(plan) = Blur::new(side, side, radius).variant(v.name).plan::<u8>(&gpu) else { continue };
            let (size, cost) = (format!("{side}x{side} radius {radius}"), plan.program().cost);
            let case = Case { op: "blur", variant: v.name, dtype: "u8", size, cost };
            let (x, y) = (x.slice(..side * side)?, y.slice(..side * side)?);
            bench.device(&case, |rec| plan.record(rec, x, y));
        }
    }
    Ok(())
}
