//! The command line of `decode`.

use super::common::network::layers::Storage;
use super::common::{self, Args, Failure, answer, open_gpu, room_for, say};
use super::head::{Samples, fit};
use super::model::{Losses, Model};
use super::text::Text;
use super::train::{Training, train};
use super::weights::{Decoder, Shape};
use indicatif::ProgressBar;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;
use tilework::Gpu;
use tilework::analysis::{kv_cache_bytes, perplexity};
use tilework::attention::KvType;

const USAGE: &str = "\
usage: decode TEXT [--width N] [--layers N] [--heads N] [--kv-heads N] [--context N]...
       decode train TEXT [--steps N] [--batch N] [--rate R] [--curve FILE]...

  --width N            elements of a token's vector (128; 64 with train)
  --layers N           layers (2)
  --heads N            heads of attention (8; 4 with train)
  --kv-heads N         heads of keys and values, a divisor of --heads (2)
  --context N          bytes read together (256; 64 with train)
  --bytes N            maximum bytes of the text (16384)
  --epochs N           passes over the vectors to fit the head (5)
  --seed N             seed of the weights, and of what train draws (1)
  --adapter SUBSTRING  the adapter, by its backend or a part of its name or driver (the best one)

train:
  --steps N            steps of training (300)
  --batch N            pieces of the text in a step (8)
  --rate R             learning rate of Adam (0.003)
  --length N           characters to write at the end (80)
  --curve FILE         picture of the losses (.png or .svg) to write after training

Without train, prints the perplexity of the last quarter of the text for each type of weights and of cached keys and values, and
tokens per second. With train, prints the loss and a line that the model writes.
";

/// What to do.
enum Task {
    Decode(Options),
    Train(Training),
}

struct Options {
    text: PathBuf,
    shape: Shape,
    bytes: usize,
    epochs: usize,
    seed: u64,
    adapter: Option<String>,
}

/// Runs the program and returns its exit code.
pub(crate) fn run(args: lexopt::Parser, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    answer(("decode", USAGE), parse(args), perform, out, err)
}

fn perform(task: &Task, out: &mut dyn Write) -> Result<u8, Failure> {
    match task {
        Task::Decode(options) => decode(options, out),
        Task::Train(training) => train(training, out),
    }
}

/// Returns what to do, or `None` for `--help`.
fn parse(args: lexopt::Parser) -> Result<Option<Task>, Failure> {
    use lexopt::prelude::*;
    let mut args = Args::new(args, &[]);
    let (mut width, mut layers, mut heads, mut kv_heads, mut context) = (None, 2, None, 2, None);
    let (mut text, mut bytes, mut epochs, mut seed, mut adapter) = (None, 1 << 14, 5, 1, None);
    let (mut trains, mut steps, mut batch, mut rate, mut length) = (false, 300, 8, 3e-3, 80);
    // Keys that only one task has.
    let (mut curve, mut of_decode, mut of_train) = (None, None, None);
    while let Some(arg) = args.next()? {
        match arg {
            Long("steps") => of_train = Some("--steps"),
            Long("batch") => of_train = Some("--batch"),
            Long("rate") => of_train = Some("--rate"),
            Long("length") => of_train = Some("--length"),
            Long("curve") => of_train = Some("--curve"),
            Long("epochs") => of_decode = Some("--epochs"),
            _ => {}
        }
        match arg {
            Long("width") => width = Some(args.value()?.parse()?),
            Long("layers") => layers = args.value()?.parse()?,
            Long("heads") => heads = Some(args.value()?.parse()?),
            Long("kv-heads") => kv_heads = args.value()?.parse()?,
            Long("context") => context = Some(args.value()?.parse()?),
            Long("bytes") => bytes = args.number(1..=1 << 30)?,
            Long("epochs") => epochs = args.number(0..=1 << 20)?,
            Long("seed") => seed = args.value()?.parse()?,
            Long("adapter") => adapter = Some(args.value()?.string()?),
            Long("steps") => steps = args.number(1..=1 << 20)?,
            Long("batch") => batch = args.number(1..=1 << 12)?,
            Long("rate") => rate = args.value()?.parse()?,
            Long("length") => length = args.number(0..=1 << 20)?,
            Long("curve") => curve = Some(PathBuf::from(args.value()?)),
            Short('h') | Long("help") => return Ok(None),
            Value(word) if text.is_none() && !trains && word == "train" => trains = true,
            Value(path) if text.is_none() => text = Some(PathBuf::from(path)),
            _ => return Err(arg.unexpected().into()),
        }
    }
    if let Some(key) = if trains { of_decode } else { of_train } {
        let task = if trains { "not used with" } else { "needs" };
        return Err(Failure::bad_input(format!("{key}: {task} `train`")));
    }
    let text = text.ok_or_else(|| Failure::bad_input("no text is named; usage: decode TEXT (see --help)"))?;
    let usual = if trains { [64, 4, 64] } else { [128, 8, 256] };
    let shape = Shape {
        layers,
        width: width.unwrap_or(usual[0]),
        heads: heads.unwrap_or(usual[1]),
        kv_heads,
        context: context.unwrap_or(usual[2]),
    };
    shape.check()?;
    Ok(Some(if trains {
        Task::Train(Training { text, shape, bytes, batch, steps, rate, seed, length, curve, adapter })
    } else {
        Task::Decode(Options { text, shape, bytes, epochs, seed, adapter })
    }))
}

fn decode(options: &Options, out: &mut dyn Write) -> Result<u8, Failure> {
    let shape = options.shape;
    let text = Text::read(&options.text, shape.context, options.bytes)?;
    let gpu = open_gpu(options.adapter.clone())?;
    let mut decoder = Decoder::new(shape, options.seed);
    let samples = vectors(&gpu, &decoder, &text)?;
    let bar = bar("walks", options.epochs);
    decoder.head = fit(&gpu, &samples, options.epochs, options.seed, |loss| {
        bar.set_message(format!(", loss {loss:.4}"));
        bar.inc(1);
    })?;
    bar.finish_and_clear();
    let mut lines = describe(options, &text);
    lines += &perplexities(&gpu, &decoder, &text)?;
    let (one_by_one, same) = token_by_token(&gpu, &decoder, &text.judged[0])?;
    lines += &one_by_one;
    say(out, &lines)?;
    Ok(u8::from(!same))
}

/// A progress bar on standard error, hidden if that is no terminal.
fn bar(of: &str, len: usize) -> ProgressBar {
    let template = format!("{{bar:30}} {{pos}} of {{len}} {of}{{msg}}, {{eta}} left");
    common::bar(len as u64, &template, 100)
}

/// Returns the decoder's vector for each byte of the first part, and the byte that follows it.
fn vectors(gpu: &Gpu, decoder: &Decoder, text: &Text) -> Result<Samples, Failure> {
    let Shape { width, context, .. } = decoder.shape;
    // The vectors as read, and twice shuffled.
    let elements = text.fitted.len().saturating_mul(context * width);
    room_for("--bytes, --width: the vectors of the text", elements, 3 * 4)?;
    let model = Model::new(gpu, decoder, Storage::F32)?;
    let pass = model.pass(context, &model.cache(KvType::F32)?)?;
    let bar = bar("pieces read", text.fitted.len());
    let mut samples = Samples::default();
    for piece in &text.fitted {
        pass.run(gpu, piece, 0)?;
        samples.vectors.extend(&pass.vectors.read()?[..(context - 1) * width]);
        samples.next.extend(piece[1..].iter().map(|&byte| u32::from(byte)));
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(samples)
}

fn describe(options: &Options, text: &Text) -> String {
    let Shape { layers, width, heads, kv_heads, context } = options.shape;
    let [fitted, judged] = [&text.fitted, &text.judged].map(|part| part.len() * context);
    let [single, pairs] = text.by_counting();
    format!(
        "{layers} layers of width {width}, {heads} heads, {kv_heads} of keys and values, random by seed {}; the head is \
         fitted to {fitted} bytes\nperplexity of the {judged} bytes behind them, in pieces of {context}; by counts of bytes \
         {single:.3}, of pairs {pairs:.3}\n",
        options.seed
    )
}

/// A table of perplexities: weight types as rows, cache types as columns.
fn perplexities(gpu: &Gpu, decoder: &Decoder, text: &Text) -> Result<String, Failure> {
    let Shape { layers, kv_heads, context, .. } = decoder.shape;
    let bar = bar("pieces judged", Storage::ALL.len() * KvType::ALL.len() * text.judged.len());
    let names: String = KvType::ALL.iter().map(|kv| format!("{:>10}", kv.name())).collect();
    let mut table = format!("weights \\ cache{names}\n");
    for storage in Storage::ALL {
        let model = Model::new(gpu, decoder, storage)?;
        table += &format!("{:<15}", storage.name());
        for kv in KvType::ALL {
            let pass = model.pass(context, &model.cache(kv)?)?;
            let losses = Losses::new(gpu, &pass, context)?;
            let mut all = Vec::new();
            for piece in &text.judged {
                pass.run(gpu, piece, 0)?;
                all.extend(losses.of(gpu, piece)?.into_iter().map(f64::from));
                bar.inc(1);
            }
            table += &format!("{:>10.4}", perplexity(&all));
        }
        table.push('\n');
    }
    bar.finish_and_clear();
    let bytes = KvType::ALL.iter().map(|kv| {
        let elements = [layers, kv_heads, decoder.shape.size()].map(|n| n as u64);
        let scales = if kv.is_scaled() { kv_cache_bytes(elements[0], elements[1], 1, 1, 4) } else { 0 };
        let [layers, heads, size] = elements;
        format!("{:>10}", kv_cache_bytes(layers, heads, size, 1, kv.dtype().size() as u64) + scales)
    });
    Ok(format!("{table}{:<15}{}\n", "bytes a token", bytes.collect::<String>()))
}

/// Maximum difference attributed to rounding, for logits scaled to a maximum of 1.
const SAME: f32 = 1e-3;

/// Compares decoding token by token with one whole pass, for every cache type.
fn token_by_token(gpu: &Gpu, decoder: &Decoder, piece: &[u8]) -> Result<(String, bool), Failure> {
    let model = Model::new(gpu, decoder, Storage::F32)?;
    let bar = bar("tokens", KvType::ALL.len() * piece.len());
    let (mut worst, mut rates) = (0f32, String::new());
    for kv in KvType::ALL {
        let whole = model.pass(piece.len(), &model.cache(kv)?)?;
        whole.run(gpu, piece, 0)?;
        let wanted = whole.logits.read()?;
        let size = wanted.iter().fold(f32::MIN_POSITIVE, |most, x| most.max(x.abs()));
        let one = model.pass(1, &model.cache(kv)?)?;
        let mut seconds = 0.0;
        for (place, wanted) in wanted.chunks(wanted.len() / piece.len()).enumerate() {
            let start = Instant::now();
            one.run(gpu, &piece[place..=place], place)?;
            let got = one.logits.read()?;
            seconds += start.elapsed().as_secs_f64();
            for (got, want) in got.iter().zip(wanted) {
                let off = (got - want).abs() / size;
                // NaN counts as the largest difference.
                worst = if off <= worst { worst } else { off };
            }
            bar.inc(1);
        }
        rates += &format!("{:>10.0}", piece.len() as f64 / seconds);
    }
    bar.finish_and_clear();
    let same = worst <= SAME;
    let verdict = if same { "as" } else { "NOT as" };
    let lines = format!(
        "{:<15}{rates}\ntoken by token the logits are {verdict} those of the whole pass: off by {worst:.1e} of the \
         largest\n",
        "tokens/s"
    );
    Ok((lines, same))
}
