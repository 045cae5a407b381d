//! The command line of `adaptive`.

use super::adaptive_grid::{Maker, Rule, SIDE};
use super::common::levels::{Doing, Summary, duration, picture_file, time};
use super::common::{Args, Failure, answer, open_gpu, say};
use super::field::Field;
use super::picture::picture;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;
use tilework::io::{check_outputs, shown};

/// Every device can bind all cells of this level.
const DEEPEST: u32 = 11;

const USAGE: &str = "\
usage: adaptive [--field NAME | --image FILE] [--picture FILE.png]

  --field NAME         waves, vortex, spots or step (vortex)
  --image FILE         a PNG or JPEG file instead: its grey values
  --threshold T        split a cell into four if its samples differ by more (0.1); fields range over about 0 to 1
  --first LEVEL        coarsest level of the grid, with 4^LEVEL cells (3)
  --deepest LEVEL      finest level of the grid, at most 11 (8)
  --capacity CELLS     maximum cells of the grid (unlimited)
  --picture FILE.png   draw the field and the edges of the cells
  --size PIXELS        longer side of the picture (1536)
  --no-check           do not check the cells on the processor
  --adapter SUBSTRING  the adapter, by its backend or a part of its name or driver (the best one)
";

struct Options {
    name: String,
    field: Field,
    rule: Rule,
    picture: Option<PathBuf>,
    size: usize,
    check: bool,
    adapter: Option<String>,
}

/// Runs the program and returns its exit code.
pub(crate) fn run(args: lexopt::Parser, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    answer(("adaptive", USAGE), parse(args), adaptive, out, err)
}

/// Returns the options, or `None` for `--help`.
fn parse(args: lexopt::Parser) -> Result<Option<Options>, Failure> {
    use lexopt::prelude::*;
    let mut args = Args::new(args, &[]);
    let (mut field, mut image) = (None, None);
    let mut options = Options {
        name: String::new(),
        field: Field::Vortex,
        rule: Rule { first: 3, deepest: 8, threshold: 0.1, limit: usize::MAX },
        picture: None,
        size: 1536,
        check: true,
        adapter: None,
    };
    while let Some(arg) = args.next()? {
        match arg {
            Long("field") => field = Some(args.value()?.string()?),
            Long("image") => image = Some(PathBuf::from(args.value()?)),
            Long("threshold") => {
                let text = args.value()?.string()?;
                let threshold = text.parse().ok().filter(|t: &f32| t.is_finite() && *t >= 0.0);
                options.rule.threshold = threshold
                    .ok_or_else(|| Failure::bad_input(format!("--threshold {text}: must be a number, 0 or more")))?;
            }
            Long("first") => options.rule.first = args.number(0..=DEEPEST)?,
            Long("deepest") => options.rule.deepest = args.number(0..=DEEPEST)?,
            Long("capacity") => options.rule.limit = args.number(4..=1 << 32)?,
            Long("picture") => options.picture = Some(picture_file(args.value()?)?),
            Long("size") => options.size = args.number(64..=8192)?,
            Long("no-check") => options.check = false,
            Long("adapter") => options.adapter = Some(args.value()?.string()?),
            Short('h') | Long("help") => return Ok(None),
            _ => return Err(arg.unexpected().into()),
        }
    }
    let Rule { first, deepest, limit, .. } = options.rule;
    if first > deepest {
        return Err(Failure::bad_input(format!("--first {first} is deeper than --deepest {deepest}")));
    }
    if limit < 1 << (2 * first) {
        let cells = 1 << (2 * first);
        return Err(Failure::bad_input(format!("--capacity {limit}: level {first} alone has {cells} cells")));
    }
    (options.field, options.name) = match (field, image) {
        (Some(_), Some(_)) => {
            return Err(Failure::bad_input("--field and --image exclude each other; give one"));
        }
        (None, Some(path)) => (Field::read(&path)?, shown(path)),
        (name, None) => {
            let name = name.unwrap_or_else(|| "vortex".to_owned());
            let field = Field::parse(&name)
                .ok_or_else(|| Failure::bad_input(format!("--field {name}: must be {}", Field::NAMES)))?;
            (field, name)
        }
    };
    Ok(Some(options))
}

fn adaptive(options: &Options, out: &mut dyn Write) -> Result<u8, Failure> {
    let Options { field, rule, .. } = options;
    check_outputs(&options.picture)?;
    let gpu = open_gpu(options.adapter.clone())?;
    let doing = Doing::new("refining the grid");
    // For comparison, the even grid of the deepest level.
    let even = Rule { first: rule.deepest, limit: usize::MAX, ..*rule };
    let (maker, rule) = Maker::new(&gpu, field, *rule)?;
    let (uniform, _) = Maker::new(&gpu, field, even)?;
    let seconds = time(&gpu, |rec| maker.record(rec))?;
    let even_seconds = time(&gpu, |rec| uniform.record(rec))?;
    let (grid, whole) = (maker.read()?, uniform.read()?.integral());

    let mut text = format!(
        "{} on {}\nsplits cells whose {SIDE} x {SIDE} samples differ by more than {:?}; levels {} to {}\n\n",
        options.name,
        gpu.profile().name,
        rule.threshold,
        rule.first,
        rule.deepest
    );
    text += &format!("{:>5} {:>9} {:>9} {:>9}\n", "level", "cells", "split", "area");
    let levels = grid.levels(rule);
    for (level, summary) in levels.iter().enumerate().skip(rule.first as usize) {
        let Summary { cells, split, .. } = *summary;
        let area = 100.0 * (cells - split) as f64 * 0.25f64.powi(level as i32);
        text += &format!("{level:>5} {cells:>9} {split:>9} {area:>8.1}%\n");
    }
    let cells = grid.0.len();
    let integral = grid.integral();
    let leaves = grid.leaves().count();
    let even = 1usize << (2 * rule.deepest);
    let part = 100.0 * leaves as f64 / even as f64;
    let off = (integral - whole).abs();
    text += &format!(
        "\n{leaves} cells of the grid, {cells} measured, in {} on the device, one submission\n",
        duration(seconds)
    );
    text += &format!(
        "the even grid of level {} has {even} cells, and takes {}; this grid has {part:.1} % of them\n",
        rule.deepest,
        duration(even_seconds)
    );
    text += &format!(
        "integral {integral:.7}, even grid {whole:.7}; error {off:.1e}, relative {:.1e}\n",
        off / whole.abs().max(f64::MIN_POSITIVE)
    );
    for (level, summary) in levels.iter().enumerate().filter(|(_, s)| s.split < s.wanted) {
        text += &format!("level {level}: {summary}; the others stay as they are\n");
    }
    let mut same = true;
    if options.check {
        doing.next("checking on the processor");
        let begin = Instant::now();
        let found = grid.check(field, rule);
        let took = duration(begin.elapsed().as_secs_f64());
        text += &match &found {
            Ok(()) => format!("checked: same cells and values as on the processor, in {took}\n"),
            Err(difference) => format!("DIFFERS from the processor's grid: {difference}\n"),
        };
        same = found.is_ok();
    }
    if let Some(path) = &options.picture {
        doing.next("drawing");
        picture(&grid, field, rule.first, options.size).save(path).map_err(Failure::bad_input)?;
        text += &format!("picture written to {}\n", shown(path));
    }
    drop(doing);
    say(out, &text)?;
    Ok(if same { 0 } else { 1 })
}
