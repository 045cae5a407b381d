//! The `cnn` example: it learns a small data set, saves its weights, and rejects invalid data.

use super::program::{Example, Folder, path};
use crate::support::{Random, gpu};
use parts::{cli, learn, weights};
use std::fs;
use std::path::{Path, PathBuf};
use tilework::io::idx::Labelled;

#[path = "../../examples/cnn"]
mod parts {
    use super::super::common;

    pub(super) mod cli;
    pub(super) mod learn;
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
fn cnn_learns_a_small_set_and_reaches_its_loss() {
    let Some(gpu) = gpu() else { return };
    let data = pictures(100, 1);
    let net = learn::network(8, 8);
    let run = |epochs: usize| {
        let how = learn::Training { epochs, batch: 20, rate: 6e-3, seed: 3 };
        let (mut losses, mut seen) = (Vec::new(), 0);
        let done = |epoch: &learn::Epoch| {
            assert!(epoch.images_per_second > 0.0);
            losses.push(epoch.loss);
            Ok(())
        };
        let parameters = learn::train(gpu, &net, &data, &how, |n, _| seen += n, done).unwrap();
        assert_eq!(seen, epochs * 100);
        (losses, parameters)
    };
    let (losses, parameters) = run(6);
    assert!(losses[0] > 0.5 && losses[5] < 0.1, "{losses:?}");
    let (confusion, _) = learn::test(gpu, &net, &parameters, &pictures(50, 2)).unwrap();
    assert_eq!(confusion.accuracy(), 1.0);
    // The same initial weights, bit for bit.
    assert_eq!(run(1).0[0].to_bits(), losses[0].to_bits());
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
    refused(&["train", "--rate", "-1"], "rate is -1");

    // Tensors of another network: one misshapen, one missing, one too many.
    let net = learn::network(8, 8);
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
    let net = learn::network(8, 8);
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
    let net = learn::network(28, 28);
    let parameters = weights::load(&folder.join("weights.safetensors"), &net).unwrap();
    let (confusion, _) = learn::test(gpu, &net, &parameters, &data).unwrap();
    // 99.85 % was published, on all of them.
    assert!(confusion.accuracy() > 0.998, "{}", confusion.accuracy());
}
