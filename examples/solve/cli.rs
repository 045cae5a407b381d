//! The command line of `solve`.

use super::matrices::{self, Failure, exit_code, open_gpu};
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;
use tilework::reference;
use tilework::sparse::{ConjugateGradient, Csr, Outcome, Preconditioner, Solution};

const USAGE: &str = "\
usage: solve A.mtx [B.mtx] [-o X.mtx] ...

  A.mtx                a symmetric and positive definite matrix, in a Matrix Market file, .mtx or .mtx.gz
  B.mtx                the right side (that whose solution is all ones)
  -o X.mtx             where the solution goes
  --tol T              the residual that is small enough, as a part of the right side (1e-5)
  --max-iter N         iterations at the most (10000)
  --precond NAME       jacobi (by the diagonal) or none (jacobi)
  --format NAME        auto, coo, csr, csc, ell, jds, hybrid or sell (auto)
  --history            print the residual of every iteration
  --plot FILE.svg      draw the residuals
  --spy FILE.png       draw where the matrix has entries
  --adapter SUBSTRING  the adapter, by a part of its name or driver (the best one); also --device
";

struct Options {
    matrix: PathBuf,
    right: Option<PathBuf>,
    output: Option<PathBuf>,
    tolerance: f32,
    iterations: usize,
    preconditioner: Preconditioner,
    format: String,
    history: bool,
    plot: Option<PathBuf>,
    spy: Option<PathBuf>,
    adapter: Option<String>,
}

/// Runs the program and gives its exit code.
pub(crate) fn run(args: lexopt::Parser, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let result = parse(args).and_then(|options| match options {
        Some(options) => solve(&options, out),
        None => {
            // A reader that has gone away is no failure.
            let _ = out.write_all(USAGE.as_bytes());
            Ok(0)
        }
    });
    exit_code("solve", result, err)
}

/// The options, or nothing if `--help` is asked for.
fn parse(mut args: lexopt::Parser) -> Result<Option<Options>, Failure> {
    use lexopt::prelude::*;
    let mut paths = Vec::new();
    let mut options = Options {
        matrix: PathBuf::new(),
        right: None,
        output: None,
        tolerance: 1e-5,
        iterations: 10_000,
        preconditioner: Preconditioner::Jacobi,
        format: "auto".into(),
        history: false,
        plot: None,
        spy: None,
        adapter: None,
    };
    while let Some(arg) = args.next()? {
        match arg {
            Short('o') => options.output = Some(args.value()?.into()),
            Long("tol") => options.tolerance = args.value()?.parse()?,
            Long("max-iter") => options.iterations = args.value()?.parse()?,
            Long("precond") => {
                options.preconditioner = match args.value()?.string()?.as_str() {
                    "jacobi" => Preconditioner::Jacobi,
                    "none" => Preconditioner::None,
                    other => {
                        return Err(Failure::bad_input(format!(
                            "--precond {other}: there are jacobi and none"
                        )));
                    }
                };
            }
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
    let mut paths = paths.into_iter();
    let (Some(matrix), right, None) = (paths.next(), paths.next(), paths.next()) else {
        return Err(Failure::bad_input(
            "name a matrix, and at most one right side: solve A.mtx [B.mtx] (see --help)",
        ));
    };
    Ok(Some(Options { matrix, right, ..options }))
}

fn solve(options: &Options, out: &mut dyn Write) -> Result<u8, Failure> {
    let mut say = |text: String| {
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|e| Failure::output(&e))
    };
    let start = Instant::now();
    let a = matrices::read_square(&options.matrix)?;
    let n = a.rows;
    say(format!(
        "{}: {n} x {n}, {} entries, read in {:.0} ms\n",
        options.matrix.display(),
        a.entries(),
        1e3 * start.elapsed().as_secs_f64()
    ))?;
    let b = match &options.right {
        Some(path) => matrices::read_vector(path, n)?,
        None => ones(&a)?,
    };
    if let Some(path) = &options.spy {
        matrices::spy(path, &a)?;
        say(format!("{}: where the matrix has entries\n", path.display()))?;
    }
    let gpu = open_gpu(options.adapter.clone())?;
    let (on_device, format) = matrices::upload(&gpu, &a, &options.format)?;
    say(format!("stored as {format}\n"))?;
    let method = ConjugateGradient::new(on_device.stored())
        .tolerance(options.tolerance)
        .iterations(options.iterations)
        .preconditioner(options.preconditioner);
    let solver = gpu.conjugate_gradient(&method)?;
    let (right, x) = (gpu.upload(&b)?, gpu.alloc_zeroed::<f32>(n)?);
    gpu.wait()?;
    let bar = matrices::progress(options.iterations);
    let start = Instant::now();
    let solution = solver.solve(&on_device, &right, &x, |iteration, residual| {
        bar.set_position(iteration as u64);
        bar.set_message(format!("{residual:.3e}"));
    });
    bar.finish_and_clear();
    let (solution, seconds) = (solution?, start.elapsed().as_secs_f64());
    let x = x.read()?;
    if options.history {
        for (iteration, residual) in solution.history.iter().enumerate() {
            say(format!("{iteration:>7} {residual:.6e}\n"))?;
        }
    }
    say(format!("{solution}; {:.3} ms{}\n", 1e3 * seconds, pace(&solution, seconds)))?;
    let (apart, farthest) = check(&a, &b, &x)?;
    say(format!("by the processor: |b - A x| / |b| = {apart:.3e}\n"))?;
    if options.right.is_none() {
        say(format!("the solution is 1 everywhere: the largest error is {farthest:.3e}\n"))?;
    }
    if let Some(path) = &options.plot {
        let title = format!("{}: {} on {}", name(options), solution.outcome, gpu.profile().name);
        matrices::plot(path, &title, "|r| / |b|", 0, &solution.history)?;
        say(format!("{}: the residuals\n", path.display()))?;
    }
    if let Some(path) = &options.output {
        matrices::write_vector(path, x)?;
        say(format!("{}: the solution\n", path.display()))?;
    }
    Ok(u8::from(solution.outcome != Outcome::Converged))
}

fn name(options: &Options) -> String {
    options.matrix.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The right side of a solution that is 1 everywhere.
fn ones(a: &Csr) -> Result<Vec<f32>, Failure> {
    let x = vec![1.0; a.cols];
    Ok(reference::spmv(1.0, a, &x, 0.0, &x)?.into_iter().map(|b| b as f32).collect())
}

/// Time of an iteration, where there were some.
fn pace(solution: &Solution, seconds: f64) -> String {
    match solution.iterations {
        0 => String::new(),
        n => format!(", {:.3} ms an iteration", 1e3 * seconds / n as f64),
    }
}

/// The residual in f64 as a part of b, and how far an element is from 1 at the most.
fn check(a: &Csr, b: &[f32], x: &[f32]) -> Result<(f64, f64), Failure> {
    let apart = reference::spmv(1.0, a, x, -1.0, b)?;
    let square: f64 = apart.iter().map(|r| r * r).sum();
    let scale: f64 = b.iter().map(|&b| f64::from(b).powi(2)).sum();
    let farthest = x.iter().map(|&x| (f64::from(x) - 1.0).abs()).fold(0.0, f64::max);
    Ok(((square / if scale > 0.0 { scale } else { 1.0 }).sqrt(), farthest))
}
