//! The command line of `quadtree`.

use super::common::levels::{Doing, duration, picture_file, time};
use super::common::{Args, Failure, answer, open_gpu, say};
use super::picture::picture;
use super::points::{self, Shape};
use super::results;
use super::tree::{Builder, DEEPEST, Rule};
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;
use tilework::io::{check_outputs, shown};

const USAGE: &str = "\
usage: quadtree [FILE] [--picture FILE.png] [-o FILE.json]

  FILE                 points: a NumPy array of f32 with two columns, or text with x and y on each line
  --shape SHAPE        generate points: uniform, clusters or spiral (clusters)
  --points N           number of generated points (100000)
  --seed S             their seed (1)
  --leaf-capacity K    split cells with more points than this (16)
  --max-depth D        deepest level, at most 16; the root is level 0 (12)
  --capacity CELLS     maximum cells of the tree (unlimited)
  --picture FILE.png   draw cells and points
  --size PIXELS        side of the picture (1600)
  -o FILE              write cells as .json, with the order of points, or as .npy
  --no-check           do not check the tree on the processor
  --adapter SUBSTRING  the adapter, by its backend or a part of its name or driver (the best one)

Points that are not finite are left out. A point on a border belongs to the cell that begins there.
";

struct Options {
    file: Option<PathBuf>,
    shape: Shape,
    points: usize,
    seed: u64,
    rule: Rule,
    picture: Option<PathBuf>,
    size: usize,
    output: Option<PathBuf>,
    check: bool,
    adapter: Option<String>,
}

/// Runs the program and returns its exit code.
pub(crate) fn run(args: lexopt::Parser, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    answer(("quadtree", USAGE), parse(args), quadtree, out, err)
}

/// Returns the options, or `None` for `--help`.
fn parse(args: lexopt::Parser) -> Result<Option<Options>, Failure> {
    use lexopt::prelude::*;
    let mut args = Args::new(args, &[]);
    let mut options = Options {
        file: None,
        shape: Shape::Clusters,
        points: 100_000,
        seed: 1,
        rule: Rule { leaf: 16, deepest: 12, limit: usize::MAX },
        picture: None,
        size: 1600,
        output: None,
        check: true,
        adapter: None,
    };
    let mut made_up = false;
    while let Some(arg) = args.next()? {
        made_up |= matches!(arg, Long("shape" | "points" | "seed"));
        match arg {
            Long("shape") => {
                let text = args.value()?.string()?;
                options.shape = Shape::parse(&text)
                    .ok_or_else(|| Failure::bad_input(format!("--shape {text}: must be {}", Shape::NAMES)))?;
            }
            Long("points") => options.points = args.number(0..=1 << 28)?,
            Long("seed") => options.seed = args.number(0..=u64::MAX)?,
            Long("leaf-capacity") => options.rule.leaf = args.number(1..=u32::MAX)?,
            Long("max-depth") => options.rule.deepest = args.number(0..=DEEPEST)?,
            Long("capacity") => options.rule.limit = args.number(4..=1 << 32)?,
            Long("picture") => options.picture = Some(picture_file(args.value()?)?),
            Long("size") => options.size = args.number(64..=8192)?,
            Short('o') => {
                let path = PathBuf::from(args.value()?);
                results::named(&path)?;
                options.output = Some(path);
            }
            Long("no-check") => options.check = false,
            Long("adapter") => options.adapter = Some(args.value()?.string()?),
            Short('h') | Long("help") => return Ok(None),
            Value(file) if options.file.is_none() => options.file = Some(file.into()),
            _ => return Err(arg.unexpected().into()),
        }
    }
    if made_up && options.file.is_some() {
        return Err(Failure::bad_input("--shape, --points and --seed generate points; leave them out with a file"));
    }
    Ok(Some(options))
}

fn quadtree(options: &Options, out: &mut dyn Write) -> Result<u8, Failure> {
    check_outputs([&options.output, &options.picture].into_iter().flatten())?;
    let doing = Doing::new("reading points");
    let (all, source) = match &options.file {
        Some(path) => (points::read(path)?, shown(path)),
        None => {
            let Options { shape, points, seed, .. } = *options;
            let source = format!("{shape:?}, seed {seed}").to_lowercase();
            (points::generate(shape, points, seed)?, source)
        }
    };
    let (points, others) = points::finite(all);
    let gpu = open_gpu(options.adapter.clone())?;
    doing.next("building the tree");
    let (builder, rule) = Builder::new(&gpu, &points, options.rule)?;
    let seconds = time(&gpu, |rec| builder.record(rec))?;
    let tree = builder.read()?;

    let mut text = format!("{} points ({source}) on {}", points.len(), gpu.profile().name);
    if others > 0 {
        text += &format!("; {others} with infinite, huge or NaN coordinates are left out");
    }
    text += &format!(
        "\ncells of more than {} points split, down to level {}\n\n{:>5} {:>9} {:>9} {:>10} {:>10}\n",
        rule.leaf, rule.deepest, "level", "cells", "split", "points", "largest"
    );
    let levels = tree.levels(rule);
    for (level, summary) in (0..).zip(&levels) {
        let counts = || tree.cells.iter().filter(|cell| cell.level == level).map(|cell| u64::from(cell.count));
        let (points, largest) = (counts().sum::<u64>(), counts().max().unwrap_or(0));
        text += &format!("{level:>5} {:>9} {:>9} {points:>10} {largest:>10}\n", summary.cells, summary.split);
    }
    let (cells, leaves) = (tree.cells.len(), tree.leaves().count());
    text +=
        &format!("\n{cells} cells, {leaves} of them leaves, in {} on the device, one submission\n", duration(seconds));
    for (i, summary) in levels.iter().enumerate().filter(|(_, s)| s.split < s.wanted) {
        text += &format!("level {i}: {summary}; the others stay leaves\n");
    }
    let mut same = true;
    if options.check {
        doing.next("checking on the processor");
        let begin = Instant::now();
        let found = tree.check(&points, rule);
        let took = duration(begin.elapsed().as_secs_f64());
        text += &match &found {
            Ok(()) => format!("checked: the processor's tree has the same cells and points, in {took}\n"),
            Err(difference) => format!("DIFFERS from the processor's tree: {difference}\n"),
        };
        same = found.is_ok();
    }
    if let Some(path) = &options.output {
        results::save(path, &tree, &points)?;
        text += &format!("cells written to {}\n", shown(path));
    }
    if let Some(path) = &options.picture {
        doing.next("drawing");
        picture(&tree, &points, options.size).save(path).map_err(Failure::bad_input)?;
        text += &format!("picture written to {}\n", shown(path));
    }
    drop(doing);
    say(out, &text)?;
    Ok(if same { 0 } else { 1 })
}
