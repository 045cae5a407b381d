//! The command line of `cnn`.

use super::common::{self, Args, Failure, answer, open_gpu};
use super::learn::{CLASSES, Confusion, Training, network, test, train};
use super::weights;
use indicatif::ProgressBar;
use std::io::Write;
use std::path::{Path, PathBuf};
use tilework::Gpu;
use tilework::io::check_outputs;
use tilework::io::idx::{Labelled, read_labelled};
use tilework::nn::Sequential;

const USAGE: &str = "\
usage: cnn train --data DIR [--weights FILE] [--epochs N]...
       cnn test --data DIR --weights FILE

  --data DIR           folder of train-images-idx3-ubyte, train-labels-idx1-ubyte and the t10k files, plain or
                       .gz: MNIST or Fashion-MNIST
  --weights FILE       safetensors file to write after training, or to read for testing
  --epochs N           passes over the training images (5)
  --batch N            images per step (128)
  --rate R             learning rate of Adam (0.001)
  --seed N             seed of the first weights and the order of images (1)
  --adapter SUBSTRING  the adapter, by its backend or a part of its name or driver (the best one)
";

struct Options {
    learns: bool,
    data: PathBuf,
    weights: Option<PathBuf>,
    training: Training,
    adapter: Option<String>,
}

/// Runs the program and returns its exit code.
pub(crate) fn run(args: lexopt::Parser, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    answer(("cnn", USAGE), parse(args), cnn, out, err)
}

/// Returns the options, or `None` for `--help`.
fn parse(args: lexopt::Parser) -> Result<Option<Options>, Failure> {
    use lexopt::prelude::*;
    let mut args = Args::new(args, &[]);
    let (mut learns, mut data, mut weights, mut adapter) = (None, None, None, None);
    let mut training = Training { epochs: 5, batch: 128, rate: 1e-3, seed: 1 };
    while let Some(arg) = args.next()? {
        match arg {
            Long("data") => data = Some(PathBuf::from(args.value()?)),
            Long("weights") => weights = Some(PathBuf::from(args.value()?)),
            Long("epochs") => training.epochs = args.number(0..=1 << 20)?,
            Long("batch") => training.batch = args.number(1..=1 << 20)?,
            Long("rate") => training.rate = args.value()?.parse()?,
            Long("seed") => training.seed = args.value()?.parse()?,
            Long("adapter") => adapter = Some(args.value()?.string()?),
            Short('h') | Long("help") => return Ok(None),
            Value(word) if learns.is_none() && word == "train" => learns = Some(true),
            Value(word) if learns.is_none() && word == "test" => learns = Some(false),
            _ => return Err(arg.unexpected().into()),
        }
    }
    let Some(learns) = learns else {
        return Err(Failure::bad_input("say `cnn train` or `cnn test` (see --help)"));
    };
    let Some(data) = data else {
        return Err(Failure::bad_input("--data is missing; name the folder of the IDX files"));
    };
    if !learns && weights.is_none() {
        return Err(Failure::bad_input("--weights is missing; name the safetensors file to test"));
    }
    Ok(Some(Options { learns, data, weights, training, adapter }))
}

/// Reads the images and labels of `part`.
fn images(folder: &Path, part: &str) -> Result<Labelled, Failure> {
    let data = read_labelled(folder, part)?;
    if let Some(label) = data.labels.iter().find(|label| usize::from(**label) >= CLASSES) {
        let text = format!("the labels of {part} hold {label}; classes are 0 to {}", CLASSES - 1);
        return Err(Failure::bad_input(text).at(folder));
    }
    Ok(data)
}

fn cnn(options: &Options, out: &mut dyn Write) -> Result<u8, Failure> {
    if options.learns {
        check_outputs(&options.weights)?;
    }
    let tested = images(&options.data, "t10k")?;
    let learned = if options.learns { Some(images(&options.data, "train")?) } else { None };
    let [_, h, w] = tested.shape;
    if let Some(learned) = learned.as_ref().filter(|data| data.shape[1..] != tested.shape[1..]) {
        let (a, b) = (&learned.shape[1..], &tested.shape[1..]);
        let text = format!("images of train are {a:?}, those of t10k {b:?}; they must have one size");
        return Err(Failure::bad_input(text).at(&options.data));
    }
    let net = network(h, w);
    let known = options.weights.as_deref().filter(|_| !options.learns);
    let known = known.map(|path| weights::load(path, &net)).transpose()?;
    let gpu = open_gpu(options.adapter.clone())?;
    let parameters = match (known, learned) {
        (Some(known), _) => known,
        (None, Some(learned)) => learn(&gpu, &net, &learned, &options.training, out)?,
        (None, None) => return Err(Failure::bad_input("there are no weights and nothing to learn from")),
    };
    if let Some(path) = options.weights.as_deref().filter(|_| options.learns) {
        weights::save(path, &net, &parameters)?;
    }
    let (confusion, images_per_second) = test(&gpu, &net, &parameters, &tested)?;
    let mut report = || {
        write!(out, "{}", table(&confusion))?;
        writeln!(
            out,
            "{:.2} % of {} images right, {images_per_second:.0} images/s",
            100.0 * confusion.accuracy(),
            tested.shape[0]
        )?;
        out.flush()
    };
    report().map_err(|e| Failure::output(&e))?;
    Ok(0)
}

fn learn(
    gpu: &Gpu,
    net: &Sequential,
    data: &Labelled,
    how: &Training,
    out: &mut dyn Write,
) -> Result<Vec<f32>, Failure> {
    let bar = bar(how.epochs * (data.shape[0] / how.batch.max(1) * how.batch));
    let mut number = 0;
    let done = train(
        gpu,
        net,
        data,
        how,
        |images, loss| {
            bar.set_message(format!("{loss:.4}"));
            bar.inc(images as u64);
        },
        |epoch| {
            number += 1;
            let line =
                format!("epoch {number}: loss {:.4}, {:.0} images/s", epoch.loss, epoch.images_per_second);
            bar.suspend(|| writeln!(out, "{line}").and_then(|()| out.flush()))
                .map_err(|e| Failure::output(&e))
        },
    );
    bar.finish_and_clear();
    done
}

/// A progress bar of images, with the last batch's loss.
fn bar(images: usize) -> ProgressBar {
    let template = "{bar:30} {human_pos:>9} of {human_len} images {per_sec:>14}, loss {msg}, {eta} left";
    common::bar(images as u64, template, 100)
}

/// The confusion matrix: classes as rows, predictions as columns.
fn table(confusion: &Confusion) -> String {
    let head: String = (0..CLASSES).map(|class| format!("{class:>6}")).collect();
    let row = |(class, counts): (usize, &Vec<usize>)| {
        let counts: String = counts.iter().map(|n| format!("{n:>6}")).collect();
        format!("{class:>5}:{counts}\n")
    };
    let rows: String = confusion.0.iter().enumerate().map(row).collect();
    format!("class  taken for\n      {head}\n{rows}")
}
