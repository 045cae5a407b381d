//! Ops whose length the device knows, beside the same ops with a length that the host knows.

mod support;

use support::{Bench, Operand, centred, random};
use tilework::prelude::*;
use tilework::program::Op;
use tilework::{Element, Result};

fn main() -> Result<()> {
    support::groups(&[("counts", counts)])
}

/// Measures an op with its known length, then with counts of all, of 1/64 and of none of that many elements.
fn beside<T: Element, K: Op<T>, C: Op<T>>(
    bench: &mut Bench, n: usize, (known, counted): (K, C), inputs: &[&dyn Operand], outputs: &[&dyn Operand],
) -> Result<()> {
    let all = [inputs, outputs].concat();
    bench.op_as::<T>(&known, ("known", ""), n.to_string(), &all)?;
    for (variant, there) in [("counted", n), ("counted 1/64", n / 64), ("counted 0", 0)] {
        let length = bench.gpu.upload(&[there as u32])?;
        let all = [inputs, &[&length], outputs].concat();
        bench.op_as::<T>(&counted, (variant, ""), n.to_string(), &all)?;
    }
    Ok(())
}

fn counts(bench: &mut Bench) -> Result<()> {
    let gpu = bench.gpu.clone();
    for n in bench.scale(vec![1 << 16, 1 << 26, 1 << 28], vec![1 << 16]) {
        let (x, y) = (random(&gpu, n, centred)?, gpu.alloc::<f32>(n)?);
        let (keys, sorted) = (random(&gpu, n, |b| b)?, gpu.alloc::<u32>(n)?);
        let (indices, few) = (random(&gpu, n, |b| b % 1024)?, gpu.alloc::<u32>(1024)?);
        let (sum, count) = (gpu.alloc::<f32>(1)?, gpu.alloc::<u32>(1)?);

        let reduce = Reduce::new(Sum, n);
        beside::<f32, _, _>(bench, n, (reduce.clone(), reduce.counted()), &[&x], &[&sum])?;
        let scan = Scan::new(Sum, n);
        beside::<f32, _, _>(bench, n, (scan.clone(), scan.counted()), &[&x], &[&y])?;
        let select = Select::by(n, Predicate::NonZero);
        beside::<u32, _, _>(bench, n, (select.clone(), select.counted()), &[&keys], &[&sorted, &count])?;
        let sort = RadixSort::new(n);
        beside::<u32, _, _>(bench, n, (sort.clone(), sort.counted()), &[&keys], &[&sorted])?;
        let histogram = Histogram::new(n, 1024);
        beside::<u32, _, _>(bench, n, (histogram.clone(), histogram.counted()), &[&indices], &[&few])?;
        let top = TopK::new(n, 100);
        beside::<f32, _, _>(bench, n, (top.clone(), top.counted()), &[&x], &[&y, &sorted])?;
        let by_key = ReduceByKey::new(Sum, n);
        let (inputs, outputs): ([&dyn Operand; 2], [&dyn Operand; 3]) = ([&indices, &x], [&sorted, &y, &count]);
        beside::<f32, _, _>(bench, n, (by_key.clone(), by_key.counted()), &inputs, &outputs)?;
        // The exponential function, as in the group `map`.
        let map = Map::new(MapFn::Exp, n);
        bench.op_as::<f32>(&map, ("known", ""), n.to_string(), &[&x, &y])?;
        for (variant, there) in [("counted", n), ("counted 1/64", n / 64), ("counted 0", 0)] {
            let length = gpu.upload(&[there as u32])?;
            let operands: [&dyn Operand; 3] = [&x, &y, &length];
            bench.op_as::<f32>(&map.clone().counted(), (variant, ""), n.to_string(), &operands)?;
        }
        let gather = Gather::new([1024, 1], n);
        let inputs: [&dyn Operand; 2] = [&few, &indices];
        beside::<u32, _, _>(bench, n, (gather.clone(), gather.counted()), &inputs, &[&sorted])?;
        let scatter = Scatter::new(ScatterOp::Add, [1024, 1], n);
        let inputs: [&dyn Operand; 2] = [&keys, &indices];
        beside::<u32, _, _>(bench, n, (scatter.clone(), scatter.counted()), &inputs, &[&few])?;
    }
    Ok(())
}
