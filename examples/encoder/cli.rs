//! The command line of `encoder`.

use super::common::network::layers::Storage;
use super::common::{self, Args, Failure, answer, open_gpu, say};
use super::exact;
use super::model::{Encoder, PRECISIONS};
use super::tokens::Vocabulary;
use super::weights::Weights;
use indicatif::ProgressBar;
use std::io::Write;
use std::path::PathBuf;
use tilework::Gpu;

const USAGE: &str = "\
usage: encoder --weights FILE --vocab FILE SENTENCE... [--precision f32|f16|int8] [--check] [--bench]

  --weights FILE       a BERT encoder's tensors, as safetensors
  --vocab FILE         its vocabulary, one word piece per line
  --precision P        f32, f16, or int8 for weights and activations (f32)
  --heads N            attention heads, which the file does not tell (12)
  --batch N            maximum sentences per batch (64)
  --check              compare each vector with one computed in f64 on the processor
  --bench              measure tokens per second, of one sentence and of a batch
  --adapter SUBSTRING  the adapter, by its backend or a part of its name or driver (the best one)

Prints the cosine of each pair of sentences. Sentences longer than the encoder's positions are cut.
";

/// Maximum sentences per batch.
const MAX_BATCH: usize = 1 << 16;

struct Options {
    weights: PathBuf,
    vocabulary: PathBuf,
    sentences: Vec<String>,
    precision: (Storage, f64),
    heads: usize,
    batch: usize,
    check: bool,
    bench: bool,
    adapter: Option<String>,
}

/// Runs the program and returns its exit code.
pub(crate) fn run(args: lexopt::Parser, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    answer(("encoder", USAGE), parse(args), encode, out, err)
}

/// Returns the options, or `None` for `--help`.
fn parse(args: lexopt::Parser) -> Result<Option<Options>, Failure> {
    use lexopt::prelude::*;
    let mut args = Args::new(args, &[]);
    let (mut weights, mut vocabulary, mut sentences) = (None, None, Vec::new());
    let (mut precision, mut heads, mut batch) = (PRECISIONS[0], 12, 64);
    let (mut check, mut bench, mut adapter) = (false, false, None);
    while let Some(arg) = args.next()? {
        match arg {
            Long("weights") => weights = Some(PathBuf::from(args.value()?)),
            Long("vocab") => vocabulary = Some(PathBuf::from(args.value()?)),
            Long("precision") => {
                let name = args.value()?.string()?;
                let known = PRECISIONS.into_iter().find(|(storage, _)| storage.name() == name);
                precision =
                    known.ok_or_else(|| Failure::bad_input(format!("--precision {name}: must be f32, f16 or int8")))?;
            }
            Long("heads") => heads = args.number(1..=1 << 10)?,
            Long("batch") => batch = args.number(1..=MAX_BATCH)?,
            Long("check") => check = true,
            Long("bench") => bench = true,
            Long("adapter") => adapter = Some(args.value()?.string()?),
            Short('h') | Long("help") => return Ok(None),
            Value(sentence) => sentences.push(sentence.string()?),
            _ => return Err(arg.unexpected().into()),
        }
    }
    let missing = |what: &str| Failure::bad_input(format!("{what} (see --help)"));
    let weights = weights.ok_or_else(|| missing("--weights is missing; name the safetensors file"))?;
    let vocabulary = vocabulary.ok_or_else(|| missing("--vocab is missing; name the vocabulary"))?;
    if sentences.is_empty() {
        return Err(missing("no sentence given"));
    }
    Ok(Some(Options { weights, vocabulary, sentences, precision, heads, batch, check, bench, adapter }))
}

fn encode(options: &Options, out: &mut dyn Write) -> Result<u8, Failure> {
    let vocabulary = Vocabulary::read(&options.vocabulary)?;
    let weights = Weights::read(&options.weights, options.heads)?;
    if vocabulary.len() != weights.pieces {
        let text = format!(
            "has {} pieces; the encoder {} knows {}",
            vocabulary.len(),
            options.weights.display(),
            weights.pieces
        );
        return Err(Failure::bad_input(text).at(&options.vocabulary));
    }
    let sentences: Vec<Vec<u32>> =
        options.sentences.iter().map(|text| vocabulary.tokens(text, weights.places)).collect();
    let gpu = open_gpu(options.adapter.clone())?;
    let bar = bar("layers", weights.layers.len());
    let encoder = Encoder::new(&gpu, &weights, options.precision.0, || bar.inc(1))?;
    bar.finish_and_clear();
    let embeddings = embed(&gpu, &encoder, &sentences, options.batch)?;
    let mut text = similarities(&options.sentences, &embeddings);
    let mut right = true;
    if options.check {
        let (lines, fits) = check(&weights, options.precision.1, &sentences, &embeddings);
        text += &lines;
        right = fits;
    }
    if options.bench {
        text += &rates(&gpu, &encoder, &sentences, options)?;
    }
    say(out, &text)?;
    Ok(u8::from(!right))
}

/// Embeds all sentences, in batches.
fn embed(gpu: &Gpu, encoder: &Encoder, sentences: &[Vec<u32>], batch: usize) -> Result<Vec<Vec<f32>>, Failure> {
    let bar = bar("sentences", sentences.len());
    let pass = encoder.pass(batch.min(sentences.len()), longest(sentences))?;
    let mut embeddings = Vec::with_capacity(sentences.len());
    for part in sentences.chunks(batch) {
        embeddings.extend(pass.embed(gpu, part)?);
        bar.inc(part.len() as u64);
    }
    bar.finish_and_clear();
    Ok(embeddings)
}

fn longest(sentences: &[Vec<u32>]) -> usize {
    sentences.iter().map(Vec::len).max().unwrap_or(1)
}

/// A progress bar on standard error, hidden if that is no terminal.
fn bar(of: &str, len: usize) -> ProgressBar {
    let template = format!("{{bar:30}} {{pos}} of {{len}} {of}, {{eta}} left");
    common::bar(len as u64, &template, 100)
}

/// Formats the cosine of each pair of sentences, and the beginning of each sentence.
fn similarities(sentences: &[String], embeddings: &[Vec<f32>]) -> String {
    let head: String = (1..=sentences.len()).map(|number| format!("{number:>8}")).collect();
    let row = |(number, (sentence, a)): (usize, (&String, &Vec<f32>))| {
        let cosine = |b: &Vec<f32>| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let cosines: String = embeddings.iter().map(|b| format!("{:>8.4}", cosine(b))).collect();
        let beginning: String = sentence.chars().filter(|c| !c.is_control()).take(50).collect();
        format!("{:>4}{cosines}  {beginning}\n", number + 1)
    };
    let rows: String = sentences.iter().zip(embeddings).enumerate().map(row).collect();
    format!("    {head}\n{rows}")
}

/// Compares each vector with the processor's, and returns whether all are within the precision's bound.
fn check(weights: &Weights, wanted: f64, sentences: &[Vec<u32>], embeddings: &[Vec<f32>]) -> (String, bool) {
    let bar = bar("sentences checked", sentences.len());
    let mut least = f64::INFINITY;
    for (tokens, embedding) in sentences.iter().zip(embeddings) {
        let got: Vec<f64> = embedding.iter().map(|x| f64::from(*x)).collect();
        // NaN counts as the smallest cosine.
        let cosine = exact::cosine(&got, &exact::embed(weights, tokens));
        least = if cosine >= least { least } else { cosine };
        bar.inc(1);
    }
    bar.finish_and_clear();
    let fits = least >= wanted;
    let verdict = if fits { "right" } else { "WRONG" };
    (format!("{verdict}: smallest cosine with f64 on the processor {least:.8}, required {wanted}\n"), fits)
}

/// Measures tokens per second of one sentence and of a batch, made of the given sentences.
fn rates(gpu: &Gpu, encoder: &Encoder, sentences: &[Vec<u32>], options: &Options) -> Result<String, Failure> {
    let mut text = format!("{:>8}{:>10}{:>14}{:>14}\n", "batch", "tokens", "time", "tokens/s");
    for batch in [1, options.batch] {
        let some: Vec<Vec<u32>> = sentences.iter().cycle().take(batch).cloned().collect();
        let pass = encoder.pass(batch, longest(&some))?;
        pass.write(&some)?;
        let runs = if gpu.profile().is_cpu() { 3 } else { 25 };
        let seconds = gpu.measure(runs, |rec| pass.record(rec))?.median();
        let tokens: usize = some.iter().map(Vec::len).sum();
        let (time, rate) = (format!("{:.3} ms", seconds * 1e3), tokens as f64 / seconds);
        text += &format!("{batch:>8}{tokens:>10}{time:>14}{rate:>14.0}\n");
    }
    Ok(text)
}
