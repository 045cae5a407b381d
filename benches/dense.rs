//! Dense linear algebra.

mod support;

use support::{Bench, Case, centred, random};
use tilework::Result;
use tilework::prelude::*;

fn main() -> Result<()> {
    let Some(mut bench) = Bench::open() else { return Ok(()) };
    let gpu = bench.gpu.clone();
    for side in bench.scale(vec![256, 1024, 4096], vec![256]) {
        let (a, b) = (random(&gpu, side * side, centred)?, random(&gpu, side * side, centred)?);
        let c = gpu.alloc::<f32>(side * side)?;
        for v in Gemm::variants() {
            let gemm = Gemm::new(side, side, side).variant(v.name).plan::<f32>(&gpu)?;
            let size = format!("{side}x{side}x{side}");
            let case = Case { op: "gemm", variant: v.name, dtype: "f32", size, cost: gemm.program().cost };
            bench.device(&case, |rec| gemm.record(rec, &a, &b, &c));
        }
    }
    bench.finish();
    Ok(())
}
