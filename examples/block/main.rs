//! A fused kernel built from the library's block level: softmax and the 8 most likely columns of each row.
//!
//! `softmax_top_8.wgsl` imports a reduction and a selection of a workgroup (`shaders/workgroup`) and adds some thirty
//! lines. It reads each score once; the two separate ops read it twice and write the whole softmax in between. A
//! sequential reference checks every number.
//!
//! ```sh
//! cargo run --release --example block
//! cargo run --release --example block -- 10000 32000
//! ```
//!
//! Exit code 1 if a result is wrong, 2 for bad arguments, 3 without an adapter.

#[path = "../common/mod.rs"]
mod common;

use common::{Args, Failure, exit_code, say};
use std::error::Error;
use std::io::Write;
use std::process::ExitCode;
use tilework::prelude::*;

const USAGE: &str = "\
usage: block [ROWS [COLUMNS]]

  ROWS     rows of scores (1000)
  COLUMNS  columns of scores (4096)
";

const KERNEL: &str = include_str!("softmax_top_8.wgsl");

/// Columns kept per row.
const KEPT: usize = 8;

fn main() -> ExitCode {
    common::main("block", std::io::stdout().lock(), |args, out, err| {
        exit_code("block", run(args, out).map_err(Failure::from), err)
    })
}

/// Returns rows and columns, or `None` for `--help`.
fn parse(args: lexopt::Parser) -> Result<Option<(usize, usize)>, Failure> {
    use lexopt::prelude::*;
    let (mut args, mut sizes) = (Args::new(args, &[]), Vec::new());
    while let Some(arg) = args.next()? {
        match arg {
            Short('h') | Long("help") => return Ok(None),
            Value(size) if sizes.len() < 2 => sizes.push(size.parse::<usize>()?),
            _ => return Err(arg.unexpected().into()),
        }
    }
    let size = |at: usize, default: usize| sizes.get(at).copied().unwrap_or(default);
    Ok(Some((size(0, 1000), size(1, 4096))))
}

fn run(args: lexopt::Parser, out: &mut dyn Write) -> Result<u8, Box<dyn Error>> {
    let Some((rows, columns)) = parse(args)? else {
        say(out, USAGE)?;
        return Ok(0);
    };
    let gpu = Gpu::new()?;
    let most = gpu.profile().limits.max_workgroups_per_dimension as usize;
    let elements = rows.checked_mul(columns).filter(|n| *n < 1 << 31);
    if !(1..=most).contains(&rows) || columns < KEPT || elements.is_none() {
        return Err(Box::new(Failure::bad_input(format!(
            "{rows} rows of {columns} columns: use 1 to {most} rows, {KEPT} or more columns, and fewer than 2^31 scores"
        ))));
    }

    let scores = scores(rows * columns);
    let x = gpu.upload(&scores)?;
    let likely = gpu.alloc::<u32>(rows * KEPT)?;
    let probabilities = gpu.alloc::<f32>(rows * KEPT)?;
    let kernel = gpu.kernel("softmax_top_8.wgsl", KERNEL, "softmax_top_8")?;
    let width = columns as u32;
    let args = [Arg::uniform(&width), Arg::from(&x), Arg::from(&likely), Arg::from(&probabilities)];
    let grid = [rows as u32, 1, 1];
    let mut rec = gpu.recorder();
    kernel.record(&mut rec, &args, grid)?;
    rec.submit()?;

    if let Some(wrong) = first_wrong(&scores, columns, &likely.read()?, &probabilities.read()?) {
        say(out, &format!("WRONG: {wrong}\n"))?;
        return Ok(1);
    }
    let fused = gpu.measure(9, |rec| kernel.record(rec, &args, grid))?;
    let all = gpu.alloc::<f32>(rows * columns)?;
    let softmax = Softmax::new(rows, columns).plan::<f32>(&gpu)?;
    let alone = gpu.measure(9, |rec| softmax.record(rec, &x, &all))?;
    let rate = 4.0 * (rows * columns) as f64 / fused.median() * 1e-9;
    say(
        out,
        &format!(
            "right: {KEPT} columns of each of {rows} rows of {columns} on {}\n\
             fused kernel            {:10.1} us, {rate:.1} GB/s ({} clock)\n\
             the op softmax by itself {:9.1} us\n",
            gpu.profile().name,
            fused.median() * 1e6,
            fused.clock,
            alone.median() * 1e6
        ),
    )?;
    Ok(0)
}

/// Scores between -8 and 8, some of them equal.
fn scores(n: usize) -> Vec<f32> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((state >> 44) as f32 - 524_288.0) / 65_536.0
    };
    (0..n).map(|_| next()).collect()
}

/// Returns the first difference from a softmax and sort in f64.
fn first_wrong(scores: &[f32], columns: usize, likely: &[u32], probabilities: &[f32]) -> Option<String> {
    for (row, scores) in scores.chunks(columns).enumerate() {
        let mut order: Vec<_> = (0..columns).collect();
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
        let top = f64::from(scores[order[0]]);
        let sum: f64 = scores.iter().map(|x| (f64::from(*x) - top).exp()).sum();
        for (k, column) in order.into_iter().take(KEPT).enumerate() {
            let (at, wanted) = (row * KEPT + k, (f64::from(scores[column]) - top).exp() / sum);
            let got = f64::from(probabilities[at]);
            if likely[at] as usize != column || (got - wanted).abs() > 1e-4 * wanted {
                return Some(format!(
                    "place {k} of row {row} is column {} with {got:e}; expected column {column} with {wanted:e}",
                    likely[at]
                ));
            }
        }
    }
    None
}
