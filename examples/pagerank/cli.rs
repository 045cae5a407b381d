//! The command line of `pagerank`.

use super::common::matrices::{self, Options};
use super::common::{Args, Failure, answer, open_gpu, say};
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;
use tilework::Slice;
use tilework::io::shown;
use tilework::program::When;
use tilework::reference;
use tilework::sparse::{Csr, PageRank};

const USAGE: &str = "\
usage: pagerank GRAPH.mtx [-o RANKS.mtx] ...

  GRAPH.mtx            links from rows to columns, as a Matrix Market file, .mtx or .mtx.gz
  -o RANKS.mtx         write all ranks
  --damping D          probability to follow a link (0.85)
  --top N              number of nodes to list (20)
  --unweighted         give all links of a node the same weight
  --start FILE.mtx     distribution of starting nodes, not negative; scaled to a sum of 1 (uniform)
  --tol T              stop when all ranks together move by at most T (1e-6)
  --max-iter N         maximum iterations (1000)
";

struct Request {
    graph: PathBuf,
    damping: f32,
    top: usize,
    unweighted: bool,
    start: Option<PathBuf>,
    options: Options,
}

/// Runs the program and returns its exit code.
pub(crate) fn run(args: lexopt::Parser, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let usage = format!("{USAGE}{}", matrices::USAGE);
    answer(("pagerank", &usage), parse(args), rank, out, err)
}

/// Returns the request, or `None` for `--help`.
fn parse(args: lexopt::Parser) -> Result<Option<Request>, Failure> {
    use lexopt::prelude::*;
    let mut args = Args::new(args, &[]);
    let (mut paths, mut options) = (Vec::new(), Options::new(1e-6, 1000));
    let (mut damping, mut top, mut unweighted, mut start) = (0.85, 20, false, None);
    while let Some(arg) = args.next()? {
        match arg {
            Short('o') => options.output = Some(args.value()?.into()),
            Long("damping") => damping = args.value()?.parse()?,
            Long("top") => top = args.value()?.parse()?,
            Long("unweighted") => unweighted = true,
            Long("start") => start = Some(PathBuf::from(args.value()?)),
            Short('h') | Long("help") => return Ok(None),
            Long(name) => {
                let name = name.to_owned();
                options.take(&name, &mut args)?;
            }
            Value(path) => paths.push(PathBuf::from(path)),
            Short(_) => return Err(arg.unexpected().into()),
        }
    }
    let [graph] = paths.try_into().map_err(|paths: Vec<PathBuf>| {
        Failure::bad_input(format!("{} files named; usage: pagerank GRAPH.mtx (see --help)", paths.len()))
    })?;
    Ok(Some(Request { graph, damping, top, unweighted, start, options }))
}

fn rank(request: &Request, out: &mut dyn Write) -> Result<u8, Failure> {
    let Request { graph, damping, top, unweighted, start, options } = request;
    options.check_outputs()?;
    let begin = Instant::now();
    let mut links = matrices::read_square(graph)?;
    let (n, entries) = (links.rows, links.entries());
    if *unweighted {
        links.values.fill(1.0);
    }
    let t = links.transitions().map_err(|e| Failure::from(e).at(graph))?;
    let dangling = links.row_ptrs.windows(2).filter(|pair| pair[0] == pair[1]).count();
    let milliseconds = 1e3 * begin.elapsed().as_secs_f64();
    let counted = format!("{n} nodes, {entries} links, {dangling} nodes without");
    say(out, &format!("{}: {counted}; read in {milliseconds:.0} ms\n", shown(graph)))?;
    let start = start.as_ref().map(|path| begins(path, n)).transpose()?;
    options.draw_pattern(&links, out)?;
    let gpu = open_gpu(options.adapter.clone())?;
    let (on_device, format) = matrices::upload(&gpu, &t, &options.format)?;
    say(out, &format!("stored as {format}\n"))?;
    let method = PageRank::new(on_device.layout())
        .damping(*damping)
        .when(start.is_some(), |op| op.personalised())
        .tolerance(options.tolerance)
        .iterations(options.iterations);
    let solver = gpu.page_rank(&method)?;
    let x = gpu.alloc::<f32>(n)?;
    let first = start.as_ref().map(|start| gpu.upload(start)).transpose()?;
    gpu.wait()?;
    let solution =
        options.watch(out, |progress| solver.run(&on_device, first.as_ref().map(Slice::from), &x, progress))?;
    let x = x.read()?;
    let moved = step(&t, *damping, start.as_deref(), &x)?;
    say(out, &format!("by the processor: one more step moves ranks by {moved:.3e}\n"))?;
    say(out, &table(&links, &x, *top))?;
    options.finish(graph, "ranks moved by", &solution, x, &gpu, out)
}

/// Reads the distribution of starting nodes and scales it to a sum of 1.
fn begins(path: &std::path::Path, n: usize) -> Result<Vec<f32>, Failure> {
    let values = matrices::read_vector(path, n)?;
    let sum: f64 = values.iter().map(|&v| f64::from(v)).sum();
    if values.iter().any(|v| !v.is_finite() || *v < 0.0) || sum <= 0.0 {
        return Err(Failure::bad_input("values must be finite and not negative, and not all 0").at(path));
    }
    Ok(values.into_iter().map(|v| (f64::from(v) / sum) as f32).collect())
}

/// Returns how far ranks move in one more step, on the processor.
fn step(t: &Csr, damping: f32, start: Option<&[f32]>, x: &[f32]) -> Result<f64, Failure> {
    let q = reference::spmv(1.0, t, x, 0.0, x)?;
    let damping = f64::from(damping);
    let rest = 1.0 - damping * q.iter().sum::<f64>();
    let begin = |i: usize| start.map_or(1.0 / t.rows as f64, |start| f64::from(start[i]));
    Ok((0..t.rows).map(|i| (damping * q[i] + rest * begin(i) - f64::from(x[i])).abs()).sum())
}

/// Lists the nodes of highest rank, numbered from 1 as in the file.
fn table(links: &Csr, ranks: &[f32], top: usize) -> String {
    let mut order: Vec<usize> = (0..ranks.len()).collect();
    order.sort_by(|&i, &j| ranks[j].total_cmp(&ranks[i]));
    let mut incoming = vec![0; ranks.len()];
    for &col in &links.col_idxs {
        incoming[col as usize] += 1;
    }
    let mut text = format!("{:>6} {:>9} {:>13} {:>9} {:>9}\n", "place", "node", "rank", "links in", "links out");
    for (place, &node) in order.iter().take(top).enumerate() {
        let outgoing = links.row_ptrs[node + 1] - links.row_ptrs[node];
        text +=
            &format!("{:>6} {:>9} {:>13.6e} {:>9} {outgoing:>9}\n", place + 1, node + 1, ranks[node], incoming[node]);
    }
    text
}
