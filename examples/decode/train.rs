//! `decode train`: a small transformer learns a text, character by character, and writes some.

use super::common::pictures::{self, curve::CurvePicture};
use super::common::{Failure, Random, open_file, open_gpu, say};
use super::transformer::{Forward, Tensors, Trainer};
use super::weights::Shape;
use indicatif::ProgressBar;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tilework::io::check_outputs;

/// Options of `decode train`.
pub(crate) struct Training {
    pub(crate) text: PathBuf,
    pub(crate) shape: Shape,
    /// Maximum bytes of the text.
    pub(crate) bytes: usize,
    /// Pieces of a step.
    pub(crate) batch: usize,
    pub(crate) steps: usize,
    pub(crate) rate: f32,
    pub(crate) seed: u64,
    /// Characters to write after training.
    pub(crate) length: usize,
    pub(crate) curve: Option<PathBuf>,
    pub(crate) adapter: Option<String>,
}

/// A text as symbols: places in the sorted list of its bytes.
pub(crate) struct Symbols {
    bytes: Vec<u8>,
    pub(crate) text: Vec<u32>,
}

impl Symbols {
    pub(crate) fn of(text: &[u8]) -> Self {
        let mut bytes = text.to_vec();
        bytes.sort_unstable();
        bytes.dedup();
        let place = |byte: &u8| bytes.partition_point(|known| known < byte) as u32;
        Self { text: text.iter().map(place).collect(), bytes }
    }

    pub(crate) fn count(&self) -> usize {
        self.bytes.len()
    }

    /// Draws pieces of `tokens` symbols, and the symbol after each of theirs.
    pub(crate) fn draw(&self, random: &mut Random, batch: usize, tokens: usize) -> [Vec<u32>; 2] {
        let (mut ids, mut next) = (Vec::new(), Vec::new());
        for _ in 0..batch {
            let at = (random.next() % (self.text.len() - tokens) as u64) as usize;
            ids.extend(&self.text[at..at + tokens]);
            next.extend(&self.text[at + 1..=at + tokens]);
        }
        [ids, next]
    }
}

/// Trains and reports.
pub(crate) fn train(how: &Training, out: &mut dyn Write) -> Result<u8, Failure> {
    if let Some(path) = &how.curve {
        pictures::is_png(path).map_err(Failure::bad_input)?;
    }
    check_outputs(&how.curve)?;
    let symbols = read(&how.text, how.bytes, how.shape.context)?;
    let gpu = open_gpu(how.adapter.clone())?;
    let tensors = Tensors::new(&how.shape, symbols.count());
    let parameters = gpu.upload(&tensors.initial(how.seed))?;
    let forward = Forward::new(&gpu, how.shape, how.batch, symbols.count(), &parameters)?;
    let trainer = Trainer::new(forward, how.rate)?;
    let Shape { layers, width, heads, kv_heads, context } = how.shape;
    say(
        out,
        &format!(
            "{} characters of {} kinds; {layers} layers of width {width}, {heads} heads, {kv_heads} of keys and values, \
             {} parameters\n",
            symbols.text.len(),
            symbols.count(),
            tensors.all.iter().map(|tensor| tensor.len()).sum::<usize>()
        ),
    )?;
    let bar = super::common::bar(how.steps as u64, "{bar:30} {pos} of {len} steps, loss {msg}, {eta} left", 100);
    let (mut random, mut losses, start) = (Random::new(how.seed), Vec::new(), Instant::now());
    for step in 1..=how.steps {
        let [ids, next] = symbols.draw(&mut random, how.batch, context);
        losses.push(trainer.step(&ids, &next)?);
        progress(&bar, &losses, step, how.steps, out)?;
    }
    bar.finish_and_clear();
    let tokens = (how.steps * how.batch * context) as f64 / start.elapsed().as_secs_f64();
    say(out, &format!("{tokens:.0} characters/s\n"))?;
    if let Some(path) = &how.curve {
        let title = format!("Loss of {}", how.text.display());
        let picture = CurvePicture { title, losses, per_mean: how.steps.div_ceil(20), mean: "mean of a twentieth" };
        pictures::save(path, &picture).map_err(Failure::bad_input)?;
    }
    let writer = Forward::new(&gpu, how.shape, 1, symbols.count(), &parameters)?;
    let written = write(&writer, &symbols, context, how.length, &mut random)?;
    say(out, &format!("{}\n", String::from_utf8_lossy(&written).escape_debug()))?;
    Ok(0)
}

/// Moves the bar, and prints the mean loss of each tenth of the steps.
fn progress(bar: &ProgressBar, losses: &[f32], step: usize, steps: usize, out: &mut dyn Write) -> Result<(), Failure> {
    bar.set_message(format!("{:.3}", losses[step - 1]));
    bar.inc(1);
    let tenth = steps.div_ceil(10);
    if step.is_multiple_of(tenth) || step == steps {
        let last = &losses[(step - 1) / tenth * tenth..];
        let mean = last.iter().sum::<f32>() / last.len() as f32;
        bar.suspend(|| say(out, &format!("step {step}: loss {mean:.3}\n")))?;
    }
    Ok(())
}

fn read(path: &Path, most: usize, context: usize) -> Result<Symbols, Failure> {
    let (file, _) = open_file(path)?;
    let mut text = Vec::new();
    file.take(most as u64).read_to_end(&mut text).map_err(|e| Failure::file(path, &e))?;
    let symbols = Symbols::of(&text);
    if text.len() <= context || symbols.count() < 2 {
        let text = format!(
            "{} bytes of {} kinds are too few: give at least two kinds, and more bytes than --context, {context}",
            text.len(),
            symbols.count()
        );
        return Err(Failure::bad_input(text).at(path));
    }
    Ok(symbols)
}

/// How much the writer prefers likely characters: probabilities are raised to 1 / 0.6.
const TEMPERATURE: f32 = 0.6;

/// Writes `length` characters after the text's first one.
fn write(
    writer: &Forward, symbols: &Symbols, context: usize, length: usize, random: &mut Random,
) -> Result<Vec<u8>, Failure> {
    let mut written = vec![symbols.text[0]];
    while written.len() <= length {
        let known = &written[written.len().saturating_sub(context)..];
        let mut ids = known.to_vec();
        ids.resize(context, 0);
        writer.run(&ids)?;
        let logits = writer.logits.slice((known.len() - 1) * symbols.count()..known.len() * symbols.count())?.read()?;
        let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let weights: Vec<f32> = logits.iter().map(|x| ((x - most) / TEMPERATURE).exp()).collect();
        let mut left = (random.next() >> 40) as f32 / (1 << 24) as f32 * weights.iter().sum::<f32>();
        let chosen = weights.iter().position(|weight| {
            left -= weight;
            left < 0.0
        });
        written.push(chosen.unwrap_or(0) as u32);
    }
    Ok(written[1..].iter().map(|symbol| symbols.bytes[*symbol as usize]).collect())
}
