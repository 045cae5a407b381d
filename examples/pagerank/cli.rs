//! The command line of `pagerank`.

use super::matrices::{self, Failure, exit_code, open_gpu};
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;
use tilework::Slice;
use tilework::reference;
use tilework::sparse::{Csr, Outcome, PageRank};

const USAGE: &str = "\
usage: pagerank GRAPH.mtx [-o RANKS.mtx] ...

  GRAPH.mtx            links from rows to columns, in a Matrix Market file, .mtx or .mtx.gz
  -o RANKS.mtx         where all ranks go
  --damping D          how often a walk goes on by a link (0.85)
  --top N              nodes that are listed (20)
  --unweighted         follow the links of a node alike, whatever their values are
  --start FILE.mtx     where walks begin: not negative, and scaled to a sum of 1 (anywhere)
  --tol T              moves of all ranks together that are small enough (1e-6)
  --max-iter N         iterations at the most (1000)
  --format NAME        auto, coo, csr, csc, ell, jds, hybrid or sell (auto)
  --history            print how far ranks moved in every iteration
  --plot FILE.svg      draw how far ranks moved
  --spy FILE.png       draw where the matrix has entries
  --adapter SUBSTRING  the adapter, by a part of its name or driver (the best one); also --device
";

struct Options {
    graph: PathBuf,
    output: Option<PathBuf>,
    damping: f32,
    top: usize,
    unweighted: bool,
    start: Option<PathBuf>,
    tolerance: f32,
    iterations: usize,
    format: String,
    history: bool,
    plot: Option<PathBuf>,
    spy: Option<PathBuf>,
    adapter: Option<String>,
}

/// Runs the program and gives its exit code.
pub(crate) fn run(args: lexopt::Parser, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let result = parse(args).and_then(|options| match options {
        Some(options) => rank(&options, out),
        None => {
            // A reader that has gone away is no failure.
            let _ = out.write_all(USAGE.as_bytes());
            Ok(0)
        }
    });
    exit_code("pagerank", result, err)
}

/// The options, or nothing if `--help` is asked for.
fn parse(mut args: lexopt::Parser) -> Result<Option<Options>, Failure> {
    use lexopt::prelude::*;
    let mut paths = Vec::new();
    let mut options = Options {
        graph: PathBuf::new(),
        output: None,
        damping: 0.85,
        top: 20,
        unweighted: false,
        start: None,
        tolerance: 1e-6,
        iterations: 1000,
        format: "auto".into(),
        history: false,
        plot: None,
        spy: None,
        adapter: None,
    };
    while let Some(arg) = args.next()? {
        match arg {
            Short('o') => options.output = Some(args.value()?.into()),
            Long("damping") => options.damping = args.value()?.parse()?,
            Long("top") => options.top = args.value()?.parse()?,
            Long("unweighted") => options.unweighted = true,
            Long("start") => options.start = Some(args.value()?.into()),
            Long("tol") => options.tolerance = args.value()?.parse()?,
            Long("max-iter") => options.iterations = args.value()?.parse()?,
            Long("format") => options.format = matrices::known_format(args.value()?.string()?)?,
            Long("history") => options.history = true,
            Long("plot") => options.plot = Some(args.value()?.into()),
            Long("spy") => options.spy = Some(args.value()?.into()),
            Long("adapter" | "device") => options.adapter = Some(args.value()?.string()?),
            Short('h') | Long("help") => return Ok(None),
            Value(path) => paths.push(PathBuf::from(path)),
            _ => return Err(arg.unexpected().into()),
        }
    }
    let [graph] = paths.try_into().map_err(|paths: Vec<PathBuf>| {
        Failure::bad_input(format!("{} files named; usage: pagerank GRAPH.mtx (see --help)", paths.len()))
    })?;
    Ok(Some(Options { graph, ..options }))
}

fn rank(options: &Options, out: &mut dyn Write) -> Result<u8, Failure> {
    let mut say = |text: String| {
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|e| Failure::output(&e))
    };
    let begin = Instant::now();
    let mut links = matrices::read_square(&options.graph)?;
    let n = links.rows;
    if options.unweighted {
        links.values.fill(1.0);
    }
    let t = links.transitions().map_err(|e| Failure::from(e).at(&options.graph))?;
    let dangling = links.row_ptrs.windows(2).filter(|pair| pair[0] == pair[1]).count();
    say(format!(
        "{}: {n} nodes, {} links, {dangling} nodes without; read in {:.0} ms\n",
        options.graph.display(),
        links.entries(),
        1e3 * begin.elapsed().as_secs_f64()
    ))?;
    let start = options.start.as_ref().map(|path| begins(path, n)).transpose()?;
    if let Some(path) = &options.spy {
        matrices::spy(path, &links)?;
        say(format!("{}: where the matrix has entries\n", path.display()))?;
    }
    let gpu = open_gpu(options.adapter.clone())?;
    let (on_device, format) = matrices::upload(&gpu, &t, &options.format)?;
    say(format!("stored as {format}\n"))?;
    let method = PageRank::new(on_device.stored())
        .damping(options.damping)
        .personalised(start.is_some())
        .tolerance(options.tolerance)
        .iterations(options.iterations);
    let solver = gpu.page_rank(&method)?;
    let x = gpu.alloc::<f32>(n)?;
    let first = start.as_ref().map(|start| gpu.upload(start)).transpose()?;
    gpu.wait()?;
    let bar = matrices::progress(options.iterations);
    let begin = Instant::now();
    let solution = solver.run(&on_device, first.as_ref().map(Slice::from), &x, |iteration, residual| {
        bar.set_position(iteration as u64);
        bar.set_message(format!("{residual:.3e}"));
    });
    bar.finish_and_clear();
    let (solution, seconds) = (solution?, begin.elapsed().as_secs_f64());
    let x = x.read()?;
    if options.history {
        for (iteration, moved) in solution.history.iter().enumerate() {
            say(format!("{:>7} {moved:.6e}\n", iteration + 1))?;
        }
    }
    say(format!("{solution}; {:.3} ms\n", 1e3 * seconds))?;
    let moved = step(&t, options.damping, start.as_deref(), &x)?;
    say(format!("by the processor: one more step moves ranks by {moved:.3e}\n"))?;
    say(table(&links, &x, options.top))?;
    if let Some(path) = &options.plot {
        let name = options.graph.file_name().unwrap_or_default().to_string_lossy();
        let title = format!("{name}: {} on {}", solution.outcome, gpu.profile().name);
        matrices::plot(path, &title, "ranks moved by", 1, &solution.history)?;
        say(format!("{}: how far ranks moved\n", path.display()))?;
    }
    if let Some(path) = &options.output {
        matrices::write_vector(path, x)?;
        say(format!("{}: all ranks\n", path.display()))?;
    }
    Ok(u8::from(solution.outcome != Outcome::Converged))
}

/// Where walks begin, scaled to a sum of 1.
fn begins(path: &std::path::Path, n: usize) -> Result<Vec<f32>, Failure> {
    let values = matrices::read_vector(path, n)?;
    let sum: f64 = values.iter().map(|&v| f64::from(v)).sum();
    if values.iter().any(|v| !v.is_finite() || *v < 0.0) || sum <= 0.0 {
        return Err(Failure::bad_input("values must be finite and not negative, and not all 0").at(path));
    }
    Ok(values.into_iter().map(|v| (f64::from(v) / sum) as f32).collect())
}

/// How far ranks move in a step that the processor takes.
fn step(t: &Csr, damping: f32, start: Option<&[f32]>, x: &[f32]) -> Result<f64, Failure> {
    let q = reference::spmv(1.0, t, x, 0.0, x)?;
    let damping = f64::from(damping);
    let rest = 1.0 - damping * q.iter().sum::<f64>();
    let begin = |i: usize| start.map_or(1.0 / t.rows as f64, |start| f64::from(start[i]));
    Ok((0..t.rows).map(|i| (damping * q[i] + rest * begin(i) - f64::from(x[i])).abs()).sum())
}

/// The nodes of highest rank, numbered from 1 as in the file.
fn table(links: &Csr, ranks: &[f32], top: usize) -> String {
    let mut order: Vec<usize> = (0..ranks.len()).collect();
    order.sort_by(|&i, &j| ranks[j].total_cmp(&ranks[i]));
    let mut incoming = vec![0; ranks.len()];
    for &col in &links.col_idxs {
        incoming[col as usize] += 1;
    }
    let mut text =
        format!("{:>6} {:>9} {:>13} {:>9} {:>9}\n", "place", "node", "rank", "links in", "links out");
    for (place, &node) in order.iter().take(top).enumerate() {
        let outgoing = links.row_ptrs[node + 1] - links.row_ptrs[node];
        text += &format!(
            "{:>6} {:>9} {:>13.6e} {:>9} {outgoing:>9}\n",
            place + 1,
            node + 1,
            ranks[node],
            incoming[node]
        );
    }
    text
}
