//! The `cnn` example: it learns a small data set, saves its weights, and rejects invalid data.

use super::program::{Example, Folder, path};
use crate::support::coverage::sample;
use crate::support::{Random, gpu};
use parts::models::{Model, Progress};
use parts::{cli, learn, weights};
use std::fs;
use std::path::{Path, PathBuf};
use tilework::io::idx::Labelled;

#[path = "../../examples/cnn"]
mod parts {
    use super::super::common;

    pub(super) mod cli;
    pub(super) mod learn;
    pub(super) mod models;
    pub(super) mod weights;
}

/// Images of 8 x 8 with a bright line in noise; its position and direction are the class.
fn pictures(n: usize, seed: u64) -> Labelled {
    let mut random = Random::new(seed);
    let (mut images, mut labels) = (Vec::new(), Vec::new());
    for i in 0..n {
        let class = i % 10;
        for y in 0..8 {
            for x in 0..8 {
                let across = if class < 5 { y } else { x };
                let line = if across == class % 5 + 1 { 160.0 } else { 40.0 };
                images.push((line + 40.0 * random.unit()) as u8);
            }
        }
        labels.push(class as u8);
    }
    Labelled { shape: [n, 8, 8], images, labels }
}

fn idx(shape: &[usize], data: &[u8]) -> Vec<u8> {
    let extents: Vec<u8> = shape.iter().flat_map(|e| (*e as u32).to_be_bytes()).collect();
    [&[0, 0, 8, shape.len() as u8], extents.as_slice(), data].concat()
}

fn write(folder: &Path, part: &str, data: &Labelled) {
    fs::write(folder.join(format!("{part}-images-idx3-ubyte")), idx(&data.shape, &data.images)).unwrap();
    fs::write(folder.join(format!("{part}-labels-idx1-ubyte")), idx(&data.shape[..1], &data.labels)).unwrap();
}

/// A folder for a test, with data.
fn folder(name: &str) -> Folder {
    let folder = Folder::new(&format!("cnn-{name}"));
    write(&folder.0, "train", &pictures(160, 1));
    write(&folder.0, "t10k", &pictures(50, 2));
    folder
}

const PROGRAM: Example = Example("cnn", cli::run);

#[test]
fn cnn_learns_a_small_set_with_each_model_and_goes_on_with_the_same_bits() {
    let Some(gpu) = gpu() else { return };
    let data = pictures(100, 1);
    for &model in sample(&Model::ALL, 1) {
        // A perceptron needs no small steps.
        let rate = if model == Model::Perceptron { 0.1 } else { 6e-3 };
        let (batch, schedule) = (20, learn::Schedule::Constant);
        let how = |epochs| learn::Training { model, epochs, batch, rate, schedule, seed: 3 };
        let (net, optimizer) = (model.network(8, 8), model.optimizer());
        let run = |how: &learn::Training, from: Progress| {
            let (mut losses, mut seen, begin) = (Vec::new(), 0, from.epochs);
            let done = |epoch: &learn::Epoch, now: &Progress| {
                assert!(epoch.images_per_second > 0.0);
                losses.push(epoch.loss);
                assert_eq!(now.epochs, begin + losses.len());
                Ok(())
            };
            let (end, all) = learn::train(gpu, how, &data, from, |n, _| seen += n, done).unwrap();
            assert_eq!((seen, all.len()), ((how.epochs - begin) * 100, (how.epochs - begin) * 5));
            (losses, end)
        };
        let start = || Progress::start(&net, &optimizer, 3).unwrap();
        let (losses, end) = run(&how(6), start());
        assert!(losses[0] > 0.25 && losses[5] < 0.1 * losses[0], "{model:?}: {losses:?}");
        let (confusion, _) = learn::test(gpu, model, &end.parameters, &pictures(50, 2)).unwrap();
        // A perceptron needs more than these 30 steps.
        let least = if model == Model::Perceptron { 0.75 } else { 1.0 };
        assert!(confusion.accuracy() >= least, "{model:?}: {}", confusion.accuracy());
        // From the middle on, the same bits.
        let (_, middle) = run(&how(2), start());
        assert!(run(&how(6), middle).1 == end, "{model:?}");
    }
}

#[test]
fn cnn_goes_on_from_a_checkpoint_and_draws_its_losses() {
    if gpu().is_none() {
        return;
    }
    let folder = folder("resumes");
    let [kept, curve, other] = ["k.safetensors", "loss.svg", "o.safetensors"].map(|name| folder.0.join(name));
    let base = ["train", "--data", path(&folder.0), "--batch", "40", "--model", "mlp"];
    let run = |more: &[&str]| PROGRAM.succeeds(&[&base, more].concat());
    let whole = run(&["--epochs", "2", "--checkpoint", path(&kept), "--curve", path(&curve)]);
    assert!(fs::read_to_string(&curve).unwrap().contains("Loss of mlp"));
    // After the last epoch there is nothing to do but test: the same table.
    let again = run(&["--epochs", "2", "--checkpoint", path(&kept), "--resume"]);
    let table = |out: &str| out[out.find("class").unwrap()..].rsplit_once(',').unwrap().0.to_owned();
    assert_eq!(table(&whole), table(&again));
    assert!(!again.contains("epoch") && whole.contains("epoch 2"), "{again}");
    let refused = |more: &[&str], text: &str| {
        assert_eq!(PROGRAM.rejects(&[&base, more].concat(), text), "");
    };
    refused(&["--resume"], "--resume needs --checkpoint");
    refused(&["--checkpoint", path(&kept), "--resume", "--epochs", "3"], "was written with --model mlp --epochs 2");
    refused(&["--checkpoint", path(&other), "--resume"], "o.safetensors");
    let net = Model::Mlp.network(8, 8);
    weights::save(&other, &net, &net.initial(1).unwrap()).unwrap();
    refused(&["--checkpoint", path(&other), "--resume"], "is no checkpoint");
    refused(&["--curve", "loss.gif"], "must end with .svg or .png");
    refused(&["--schedule", "linear"], "--schedule linear: must be one of constant, cosine, steps");
}

#[test]
fn cnn_schedules_fall_as_they_say() {
    use learn::Schedule::{Constant, Cosine, Steps};
    let of = |schedule: learn::Schedule| [0, 45, 89].map(|step| schedule.share(step, 90));
    assert_eq!(of(Constant), [1.0; 3]);
    let [first, middle, last] = of(Cosine);
    assert!(first == 1.0 && (middle - 0.5).abs() < 1e-12 && last < 1e-3);
    let [first, middle, last] = of(Steps);
    assert!(first == 1.0 && (middle - 0.1).abs() < 1e-12 && (last - 0.01).abs() < 1e-12);
}

#[test]
fn cnn_saves_and_loads_its_weights() {
    if gpu().is_none() {
        return;
    }
    let folder = folder("keeps");
    let file = folder.0.join("w.safetensors");
    let files = ["--data", path(&folder.0), "--weights", path(&file)];
    let training = ["train", "--epochs", "2", "--batch", "40", "--rate", "0.004"];
    let out = PROGRAM.succeeds(&[&training[..], &files].concat());
    assert!(out.contains("epoch 2: loss ") && out.contains("taken for"), "{out}");
    let tested = PROGRAM.succeeds(&[&["test"], &files[..]].concat());
    // The same table and accuracy as after training.
    let table = tested.rsplit_once(',').unwrap().0;
    assert!(out.contains(table) && tested.contains("% of 50 images right"), "{tested} {out}");
    let left: Vec<_> = fs::read_dir(&folder.0).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 5, "{left:?}");
}

#[test]
fn cnn_rejects_invalid_data_and_weights() {
    if gpu().is_none() {
        return;
    }
    let folder = folder("refuses");
    let refused = |args: &[&str], text: &str| {
        assert_eq!(PROGRAM.rejects(&[args, &["--data", path(&folder.0)]].concat(), text), "");
    };
    let file = folder.0.join("w.safetensors");
    let test = ["test", "--weights", path(&file)];
    refused(&[], "say `cnn train`");
    refused(&["learn"], "learn");
    refused(&["test"], "--weights is missing");
    refused(&test, "w.safetensors");
    fs::write(&file, "no tensors at all").unwrap();
    refused(&test, "is not a safetensors file");
    refused(&["train", "--batch", "0"], "--batch 0");
    refused(&["train", "--seed", "1", "--seed", "1"], "--seed is given twice");
    refused(&["train", "--batch", "161"], "the number of images, 160");
    refused(&["train", "--rate", "-1"], "--rate -1: must be");
    refused(&["train", "--model", "vgg"], "--model vgg: must be one of cnn, lenet, mlp, perceptron");

    // Tensors of another network: one misshapen, one missing, one too many.
    let net = Model::Cnn.network(8, 8);
    let other = tilework::nn::Sequential::new([1, 8, 8]).conv(16, [3, 3], [1, 1], [1, 1]);
    weights::save(&file, &other, &other.initial(1).unwrap()).unwrap();
    refused(&test, "`0.weight` is [16, 1, 3, 3] of F32; the network needs [32, 1, 3, 3]");
    let front = tilework::nn::Sequential::new([1, 8, 8]).conv(32, [3, 3], [1, 1], [1, 1]);
    weights::save(&file, &front, &front.initial(1).unwrap()).unwrap();
    refused(&test, "has no tensor `3.weight` of shape [64, 32, 3, 3]");
    let longer = net.clone().linear(10);
    weights::save(&file, &longer, &longer.initial(1).unwrap()).unwrap();
    refused(&test, "belongs to no layer");
    // A failed write leaves no file.
    let nowhere = folder.0.join("none").join("w.safetensors");
    assert!(weights::save(&nowhere, &net, &net.initial(1).unwrap()).is_err());

    let images = folder.0.join("t10k-images-idx3-ubyte");
    let whole = fs::read(&images).unwrap();
    fs::write(&images, &whole[..100]).unwrap();
    refused(&test, "the file has 84");
    fs::write(&images, idx(&[50, 4, 16], &whole[16..])).unwrap();
    refused(&["train"], "must have one size");
    fs::write(&images, &whole).unwrap();
    fs::write(folder.0.join("t10k-labels-idx1-ubyte"), idx(&[50], &[10; 50])).unwrap();
    refused(&test, "the labels of t10k hold 10");
    fs::write(folder.0.join("t10k-labels-idx1-ubyte"), idx(&[49], &[1; 49])).unwrap();
    refused(&test, "one label for each image");
}

#[test]
fn weights_survive_a_round_trip() {
    let net = Model::Cnn.network(8, 8);
    let values = net.initial(9).unwrap();
    let folder = Folder::new("weights");
    let file = folder.0.join("w.safetensors");
    weights::save(&file, &net, &values).unwrap();
    assert_eq!(weights::load(&file, &net).unwrap(), values);
}

/// The digits and published weights that .ci/oracles fetches, in the folder that TILEWORK_MNIST names.
#[test]
fn published_weights_classify_real_digits() {
    let (Some(gpu), Some(folder)) = (gpu(), std::env::var_os("TILEWORK_MNIST").map(PathBuf::from)) else {
        eprintln!("skipped: set TILEWORK_MNIST to the folder of the digits (.ci/oracles fetches them)");
        return;
    };
    let mut data = tilework::io::idx::read_labelled(&folder, "t10k").unwrap();
    if gpu.profile().is_cpu() {
        // One in five, which a CPU classifies in seconds.
        let some: Vec<usize> = (0..data.shape[0]).step_by(5).collect();
        data.labels = some.iter().map(|&i| data.labels[i]).collect();
        data.images = some.iter().flat_map(|&i| data.images[784 * i..784 * (i + 1)].to_vec()).collect();
        data.shape[0] = some.len();
    }
    let net = Model::Cnn.network(28, 28);
    let parameters = weights::load(&folder.join("weights.safetensors"), &net).unwrap();
    let (confusion, _) = learn::test(gpu, Model::Cnn, &parameters, &data).unwrap();
    // 99.85 % was published, on all of them.
    assert!(confusion.accuracy() > 0.998, "{}", confusion.accuracy());
}
