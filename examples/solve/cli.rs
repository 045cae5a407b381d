//! The command line of `solve`.

use super::common::matrices::{self, Options};
use super::common::{Args, Failure, answer, open_gpu, say};
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;
use tilework::io::shown;
use tilework::reference;
use tilework::sparse::{ConjugateGradient, Csr, Preconditioner};

const USAGE: &str = "\
usage: solve A.mtx [B.mtx] [-o X.mtx] ...

  A.mtx                a symmetric positive definite matrix, as a Matrix Market file, .mtx or .mtx.gz
  B.mtx                the right side (chosen so that the solution is all ones)
  -o X.mtx             write the solution
  --tol T              stop at this residual, relative to the right side (1e-5)
  --max-iter N         maximum iterations (10000)
  --precond NAME       preconditioner: jacobi (the diagonal) or none (jacobi)
";

struct Request {
    matrix: PathBuf,
    right: Option<PathBuf>,
    preconditioner: Preconditioner,
    options: Options,
}

/// Runs the program and returns its exit code.
pub(crate) fn run(args: lexopt::Parser, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let usage = format!("{USAGE}{}", matrices::USAGE);
    answer(("solve", &usage), parse(args), solve, out, err)
}

/// Returns the request, or `None` for `--help`.
fn parse(args: lexopt::Parser) -> Result<Option<Request>, Failure> {
    use lexopt::prelude::*;
    let mut args = Args::new(args, &[]);
    let (mut paths, mut options) = (Vec::new(), Options::new(1e-5, 10_000));
    let mut preconditioner = Preconditioner::Jacobi;
    while let Some(arg) = args.next()? {
        match arg {
            Short('o') => options.output = Some(args.value()?.into()),
            Long("precond") => {
                preconditioner = match args.value()?.string()?.as_str() {
                    "jacobi" => Preconditioner::Jacobi,
                    "none" => Preconditioner::None,
                    other => {
                        let text = format!("--precond {other}: there are jacobi and none");
                        return Err(Failure::bad_input(text));
                    }
                };
            }
            Short('h') | Long("help") => return Ok(None),
            Long(name) => {
                let name = name.to_owned();
                options.take(&name, &mut args)?;
            }
            Value(path) => paths.push(PathBuf::from(path)),
            Short(_) => return Err(arg.unexpected().into()),
        }
    }
    let mut paths = paths.into_iter();
    let (Some(matrix), right, None) = (paths.next(), paths.next(), paths.next()) else {
        return Err(Failure::bad_input("name a matrix, and at most one right side: solve A.mtx [B.mtx] (see --help)"));
    };
    Ok(Some(Request { matrix, right, preconditioner, options }))
}

fn solve(request: &Request, out: &mut dyn Write) -> Result<u8, Failure> {
    let Request { matrix, right, preconditioner, options } = request;
    options.check_outputs()?;
    let start = Instant::now();
    let a = matrices::read_square(matrix)?;
    let (n, entries) = (a.rows, a.entries());
    let milliseconds = 1e3 * start.elapsed().as_secs_f64();
    say(out, &format!("{}: {n} x {n}, {entries} entries, read in {milliseconds:.0} ms\n", shown(matrix)))?;
    let b = match right {
        Some(path) => matrices::read_vector(path, n)?,
        None => ones(&a)?,
    };
    options.draw_pattern(&a, out)?;
    let gpu = open_gpu(options.adapter.clone())?;
    let (on_device, format) = matrices::upload(&gpu, &a, &options.format)?;
    say(out, &format!("stored as {format}\n"))?;
    let method = ConjugateGradient::new(on_device.layout())
        .tolerance(options.tolerance)
        .iterations(options.iterations)
        .preconditioner(*preconditioner);
    let solver = gpu.conjugate_gradient(&method)?;
    let (b_there, x) = (gpu.upload(&b)?, gpu.alloc_zeroed::<f32>(n)?);
    gpu.wait()?;
    let solution = options.watch(out, |progress| solver.solve(&on_device, &b_there, &x, progress))?;
    let x = x.read()?;
    let (apart, farthest) = check(&a, &b, &x)?;
    say(out, &format!("on the processor: |b - A x| / |b| = {apart:.3e}\n"))?;
    if right.is_none() {
        say(out, &format!("the solution is 1 everywhere: the largest error is {farthest:.3e}\n"))?;
    }
    options.finish(matrix, "|r| / |b|", &solution, x, &gpu, out)
}

/// Returns the right side whose solution is all ones.
fn ones(a: &Csr) -> Result<Vec<f32>, Failure> {
    let x = vec![1.0; a.cols];
    Ok(reference::spmv(1.0, a, &x, 0.0, &x)?.into_iter().map(|b| b as f32).collect())
}

/// Returns the relative residual in f64, and the largest distance of an element from 1.
fn check(a: &Csr, b: &[f32], x: &[f32]) -> Result<(f64, f64), Failure> {
    let apart = reference::spmv(1.0, a, x, -1.0, b)?;
    let square: f64 = apart.iter().map(|r| r * r).sum();
    let scale: f64 = b.iter().map(|&b| f64::from(b).powi(2)).sum();
    let farthest = x.iter().map(|&x| (f64::from(x) - 1.0).abs()).fold(0.0, f64::max);
    Ok(((square / if scale > 0.0 { scale } else { 1.0 }).sqrt(), farthest))
}
