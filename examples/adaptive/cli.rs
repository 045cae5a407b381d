//! The command line of `adaptive`.

use super::adaptive_grid::{Maker, Rule, SIDE};
use super::common::levels::{Doing, duration, picture_file, times};
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
  --capacity CELLS     maximum cells of a level (unlimited)
  --picture FILE.png   draw the field and the edges of the cells
  --size PIXELS        longer side of the picture (1536)
  --no-check           do not check the cells on the processor
  --adapter SUBSTRING  the adapter, by its backend or a part of its name or driver (the best one)
";

struct Options {
    name: String,
    field: Field,
    rule: Rule,
    capacity: usize,
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
        rule: Rule { first: 3, deepest: 8, threshold: 0.1 },
        capacity: usize::MAX,
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
                options.rule.threshold = threshold.ok_or_else(|| {
                    Failure::bad_input(format!("--threshold {text}: must be a number, 0 or more"))
                })?;
            }
            Long("first") => options.rule.first = args.number(0..=DEEPEST)?,
            Long("deepest") => options.rule.deepest = args.number(0..=DEEPEST)?,
            Long("capacity") => options.capacity = args.number(4..=1 << 32)?,
            Long("picture") => options.picture = Some(picture_file(args.value()?)?),
            Long("size") => options.size = args.number(64..=8192)?,
            Long("no-check") => options.check = false,
            Long("adapter") => options.adapter = Some(args.value()?.string()?),
            Short('h') | Long("help") => return Ok(None),
            _ => return Err(arg.unexpected().into()),
        }
    }
    let Rule { first, deepest, .. } = options.rule;
    if first > deepest {
        return Err(Failure::bad_input(format!("--first {first} is deeper than --deepest {deepest}")));
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
    let even = Rule { first: rule.deepest, ..*rule };
    let [maker, uniform] = [(*rule, options.capacity), (even, usize::MAX)]
        .map(|(rule, capacity)| Maker::new(&gpu, field, rule, capacity));
    let (maker, uniform) = (maker?, uniform?);
    let (seconds, each) = times(&gpu, maker.stages(), |rec, stage| maker.record(rec, stage))?;
    let even_seconds =
        gpu.time(|rec| (0..uniform.stages()).try_for_each(|s| uniform.record(rec, s)))?.seconds;
    let (grid, whole) = (maker.read()?, uniform.integral()?);

    let mut text = format!(
        "{} on {}\nsplits cells whose {SIDE} x {SIDE} samples differ by more than {:?}; levels {} to {}\n\n",
        options.name,
        gpu.profile().name,
        rule.threshold,
        rule.first,
        rule.deepest
    );
    text += &format!("{:>5} {:>9} {:>9} {:>9} {:>10}\n", "level", "cells", "split", "area", "time");
    let mut cells = 0;
    for (i, (summary, all)) in grid.levels.iter().enumerate() {
        let level = rule.first + i as u32;
        let leaves = all.len() - summary.split;
        let area = 100.0 * leaves as f64 * 0.25f64.powi(level as i32);
        let (split, time) = (summary.split, duration(each[i]));
        text += &format!("{level:>5} {:>9} {split:>9} {area:>8.1}% {time:>10}\n", all.len());
        cells += all.len();
    }
    let leaves = grid.leaves().count();
    let even = uniform.room[0];
    let part = 100.0 * leaves as f64 / even as f64;
    let off = (grid.integral - whole).abs();
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
        "integral {:.7}, even grid {whole:.7}; error {off:.1e}, relative {:.1e}\n",
        grid.integral,
        off / whole.abs().max(f64::MIN_POSITIVE)
    );
    for (i, (summary, _)) in grid.levels.iter().enumerate().filter(|(_, (s, _))| s.split < s.wanted) {
        text += &format!("level {}: {summary}; the others stay as they are\n", rule.first as usize + i);
    }
    let mut same = true;
    if options.check {
        doing.next("checking on the processor");
        let begin = Instant::now();
        let found = grid.check(field, *rule, &maker.room);
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
