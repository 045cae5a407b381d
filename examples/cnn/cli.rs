//! The command line of `cnn`.

use super::common::pictures::{self, curve::CurvePicture};
use super::common::{self, Args, Failure, answer, open_gpu};
use super::learn::{Confusion, Schedule, Training, test, train};
use super::models::{CLASSES, Model, Progress};
use super::weights;
use indicatif::ProgressBar;
use std::io::Write;
use std::path::{Path, PathBuf};
use tilework::Gpu;
use tilework::io::check_outputs;
use tilework::io::idx::{Labelled, read_labelled};

const USAGE: &str = "\
usage: cnn train --data DIR [--weights FILE] [--epochs N]...
       cnn test --data DIR --weights FILE [--model NAME]

  --data DIR           folder of train-images-idx3-ubyte, train-labels-idx1-ubyte and the t10k files, plain or
                       .gz: MNIST or Fashion-MNIST
  --model NAME         cnn, lenet, mlp or perceptron (cnn)
  --weights FILE       safetensors file to write after training, or to read for testing
  --checkpoint FILE    safetensors file of weights, optimizer and epochs done, written after each epoch
  --resume             goes on from the checkpoint, with the same options and the same bits
  --curve FILE         picture of the losses (.png or .svg) to write after training
  --epochs N           passes over the training images (5)
  --batch N            images per step (128)
  --rate R             learning rate (0.001 for Adam; 0.1 for the perceptron's gradient descent)
  --schedule NAME      how the rate falls: constant, cosine or steps (cosine)
  --seed N             seed of the first weights and the order of images (1)
  --adapter SUBSTRING  the adapter, by its backend or a part of its name or driver (the best one)

After training and in `test`, prints a table of classes (rows) against predictions (columns).
";

struct Options {
    learns: bool,
    data: PathBuf,
    weights: Option<PathBuf>,
    checkpoint: Option<PathBuf>,
    resumes: bool,
    curve: Option<PathBuf>,
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
    let (mut checkpoint, mut resumes, mut curve, mut rate) = (None, false, None, None);
    let (model, schedule) = (Model::Cnn, Schedule::Cosine);
    let mut training = Training { model, epochs: 5, batch: 128, rate: 0.0, schedule, seed: 1 };
    while let Some(arg) = args.next()? {
        match arg {
            Long("data") => data = Some(PathBuf::from(args.value()?)),
            Long("model") => {
                training.model = named("model", &args.value()?.string()?, Model::ALL, Model::name)?;
            }
            Long("weights") => weights = Some(PathBuf::from(args.value()?)),
            Long("checkpoint") => checkpoint = Some(PathBuf::from(args.value()?)),
            Long("resume") => resumes = true,
            Long("curve") => curve = Some(PathBuf::from(args.value()?)),
            Long("epochs") => training.epochs = args.number(0..=1 << 20)?,
            Long("batch") => training.batch = args.number(1..=1 << 20)?,
            Long("rate") => rate = Some(args.value()?.parse()?),
            Long("schedule") => {
                let name = args.value()?.string()?;
                training.schedule = named("schedule", &name, Schedule::ALL, Schedule::name)?;
            }
            Long("seed") => training.seed = args.value()?.parse()?,
            Long("adapter") => adapter = Some(args.value()?.string()?),
            Short('h') | Long("help") => return Ok(None),
            Value(word) if learns.is_none() && word == "train" => learns = Some(true),
            Value(word) if learns.is_none() && word == "test" => learns = Some(false),
            _ => return Err(arg.unexpected().into()),
        }
    }
    training.rate = rate.unwrap_or(training.model.rate());
    let Some(learns) = learns else {
        return Err(Failure::bad_input("say `cnn train` or `cnn test` (see --help)"));
    };
    let Some(data) = data else {
        return Err(Failure::bad_input("--data is missing; name the folder of the IDX files"));
    };
    if !learns && weights.is_none() {
        return Err(Failure::bad_input("--weights is missing; name the safetensors file to test"));
    }
    if resumes && checkpoint.is_none() {
        return Err(Failure::bad_input("--resume needs --checkpoint FILE, the file to go on from"));
    }
    if let Some(path) = &curve {
        pictures::is_png(path).map_err(Failure::bad_input)?;
    }
    Ok(Some(Options { learns, data, weights, checkpoint, resumes, curve, training, adapter }))
}

/// Finds the item of that name.
fn named<T: Copy, const N: usize>(
    key: &str, name: &str, all: [T; N], name_of: fn(T) -> &'static str,
) -> Result<T, Failure> {
    all.into_iter()
        .find(|item| name_of(*item) == name)
        .ok_or_else(|| Failure::bad_input(format!("--{key} {name}: must be one of {}", all.map(name_of).join(", "))))
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
        check_outputs(options.weights.iter().chain(&options.checkpoint).chain(&options.curve))?;
    }
    let tested = images(&options.data, "t10k")?;
    let learned = if options.learns { Some(images(&options.data, "train")?) } else { None };
    let [_, h, w] = tested.shape;
    if let Some(learned) = learned.as_ref().filter(|data| data.shape[1..] != tested.shape[1..]) {
        let (a, b) = (&learned.shape[1..], &tested.shape[1..]);
        let text = format!("images of train are {a:?}, those of t10k {b:?}; they must have one size");
        return Err(Failure::bad_input(text).at(&options.data));
    }
    let model = options.training.model;
    let net = model.network(h, w);
    let known = options.weights.as_deref().filter(|_| !options.learns);
    let known = known.map(|path| weights::load(path, &net)).transpose()?;
    let gpu = open_gpu(options.adapter.clone())?;
    let parameters = match (known, learned) {
        (Some(known), _) => known,
        (None, Some(learned)) => learn(&gpu, &learned, options, out)?,
        (None, None) => return Err(Failure::bad_input("there are no weights and nothing to learn from")),
    };
    if let Some(path) = options.weights.as_deref().filter(|_| options.learns) {
        weights::save(path, &net, &parameters)?;
    }
    let (confusion, images_per_second) = test(&gpu, model, &parameters, &tested)?;
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

/// The options that a checkpoint must have been written with.
fn needed(how: &Training) -> String {
    let Training { model, epochs, batch, rate, schedule, seed } = how;
    let (model, schedule) = (model.name(), schedule.name());
    format!("--model {model} --epochs {epochs} --batch {batch} --rate {rate} --schedule {schedule} --seed {seed}")
}

fn learn(gpu: &Gpu, data: &Labelled, options: &Options, out: &mut dyn Write) -> Result<Vec<f32>, Failure> {
    let Options { training: how, checkpoint, .. } = options;
    let ([n, h, w], model) = (data.shape, how.model);
    let (net, optimizer) = (model.network(h, w), model.optimizer());
    let from = match checkpoint.as_deref().filter(|_| options.resumes) {
        Some(path) => weights::load_progress(path, &net, &optimizer, &needed(how))?,
        None => Progress::start(&net, &optimizer, how.seed)?,
    };
    let bar = bar(how.epochs.saturating_sub(from.epochs) * (n / how.batch.max(1) * how.batch));
    let trained = train(
        gpu,
        how,
        data,
        from,
        |images, loss| {
            bar.set_message(format!("{loss:.4}"));
            bar.inc(images as u64);
        },
        |epoch, now| {
            if let Some(path) = checkpoint {
                weights::save_progress(path, &net, &optimizer, now, &needed(how))?;
            }
            let (number, speed) = (now.epochs, epoch.images_per_second);
            let line = format!("epoch {number}: loss {:.4}, {speed:.0} images/s", epoch.loss);
            bar.suspend(|| writeln!(out, "{line}").and_then(|()| out.flush())).map_err(|e| Failure::output(&e))
        },
    );
    bar.finish_and_clear();
    let (end, losses) = trained?;
    if let Some(path) = &options.curve {
        let title = format!("Loss of {} on {}", model.name(), gpu.profile().name);
        pictures::save(path, &CurvePicture { title, losses, per_mean: n / how.batch, mean: "mean of an epoch" })
            .map_err(Failure::bad_input)?;
    }
    Ok(end.parameters)
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
