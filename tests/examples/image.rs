//! The `image` example: its command line on files of every kind.

use super::program::{Example, Folder, path};
use crate::support::{Random, gpu};
use parts::files::{Format, Picture};
use parts::{cli, files, steps};
use std::fs;
use std::path::Path;
use tilework::image::Image;

#[path = "../../examples/image"]
mod parts {
    use super::super::common;

    pub(super) mod cli;
    pub(super) mod files;
    pub(super) mod steps;
}

/// Gradients with some noise, mostly dark.
fn picture(image: Image) -> Picture {
    let mut random = Random::new(image.w as u64);
    let n = image.h * image.w * image.channels;
    let pixels = (0..n).map(|i| ((i * 150 / n) as u64 + random.next() % 40) as u8).collect();
    Picture { image, pixels }
}

const PROGRAM: Example = Example("image", cli::run);

fn run(input: &Path, output: &Path, args: &[&str]) -> (u8, String, String) {
    PROGRAM.run(&[&[path(input), path(output)], args].concat())
}

#[test]
fn image_filters_files_like_the_cpu() {
    if gpu().is_none() {
        return;
    }
    let folder = Folder::new("image");
    let (input, output) = (folder.0.join("in.png"), folder.0.join("out.png"));
    let sizes = [Image::rgb([47, 61]), Image::rgba([20, 32]), Image::grey([33, 40]), Image::new([9, 7], 2)];
    for image in sizes.into_iter().chain([Image::rgb([1, 1]), Image::grey([1, 50]), Image::rgb([50, 1])]) {
        files::write(&input, Format::Png, picture(image)).unwrap();
        let steps = "blur=2,equalize,gaussian=1.5,sobel,grey";
        let (code, out, err) = run(&input, &output, &["--ops", steps, "--check"]);
        assert!(code == 0 && !out.contains("DIFFERS") && err.is_empty(), "{image:?}: {out}{err}");
        assert_eq!(out.matches("largest difference").count(), if image.channels < 3 { 4 } else { 5 }, "{out}");
        let result = files::read(&output).unwrap();
        assert_eq!((result.image.h, result.image.w), (image.h, image.w));
        assert_eq!(result.image.channels, if image.channels == 2 { 2 } else { 1 });
    }
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 2);
}

#[test]
fn image_keeps_unchanged_channels() {
    if gpu().is_none() {
        return;
    }
    let folder = Folder::new("image-keeps");
    let path = folder.0.join("a.png");
    for channels in 1..=4 {
        let before = picture(Image::new([13, 21], channels));
        let pixels = before.pixels.clone();
        files::write(&path, Format::Png, before).unwrap();
        // In place.
        let (code, _, err) = run(&path, &path, &["--ops", "blur=0"]);
        assert_eq!(code, 0, "{err}");
        let after = files::read(&path).unwrap();
        assert!(after.image == Image::new([13, 21], channels) && after.pixels == pixels);
    }
    // JPEG has no opacity, and changes pixels a little.
    let photo = folder.0.join("b.JPG");
    let (code, out, _) = run(&path, &photo, &["--ops", "blur=0"]);
    assert!(code == 0 && out.contains("21 x 13 pixels, colours, written"), "{out}");
    let after = files::read(&photo).unwrap();
    assert_eq!(after.image, Image::rgb([13, 21]));
    let (code, out, err) = run(&photo, &path, &["--ops", "grey,equalize", "--check"]);
    assert!(code == 0 && out.contains("21 x 13 pixels, grey, written"), "{out}{err}");
}

#[test]
fn bands_give_the_same_image_as_one_pass() {
    let Some(gpu) = gpu() else { return };
    let Picture { image, pixels } = picture(Image::rgb([100, 33]));
    let x = gpu.upload(&pixels).unwrap();
    for step in ["grey", "blur=3", "gaussian=0.7", "sobel"] {
        let step = steps::Step::parse(step).unwrap();
        let whole = cli::once(gpu, step, image, &x).unwrap().1.read().unwrap();
        let (done, got) = cli::by_bands(gpu, step, image, &pixels, 99 * 17).unwrap();
        assert!(done.bands > 5 && got == whole, "{step}");
    }
    assert!(cli::by_bands(gpu, steps::Step::Equalize, image, &pixels, 99 * 17).is_err());
    assert!(cli::by_bands(gpu, steps::Step::Blur(50), image, &pixels, 99 * 17).is_err());
}

#[test]
fn image_rejects_truncated_files() {
    let folder = Folder::new("image-cut");
    for (name, format) in [("a.png", Format::Png), ("a.jpg", Format::Jpeg)] {
        let path = folder.0.join(name);
        files::write(&path, format, picture(Image::rgb([40, 30]))).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        if format == Format::Jpeg {
            // A thumbnail, with its own end marker.
            bytes.splice(2..2, *b"\xff\xe1\x00\x0cExif\0\0\xff\xd8\xff\xd9");
        }
        fs::write(&path, &bytes).unwrap();
        assert_eq!(files::read(&path).unwrap().image, Image::rgb([40, 30]), "{name}");
        let cut = folder.0.join("cut");
        for length in 0..bytes.len() {
            fs::write(&cut, &bytes[..length]).unwrap();
            assert!(files::read(&cut).is_err(), "{length} of {} bytes of {name}", bytes.len());
        }
        // Data after the end marker is not part of the image.
        fs::write(&cut, [&bytes[..], b"more"].concat()).unwrap();
        assert!(files::read(&cut).is_ok(), "{name}");
    }
}

#[test]
fn image_rejects_bad_input() {
    if gpu().is_none() {
        return;
    }
    let folder = Folder::new("image-bad");
    let (good, photo) = (folder.0.join("good.png"), folder.0.join("good.jpg"));
    files::write(&good, Format::Png, picture(Image::rgb([40, 30]))).unwrap();
    files::write(&photo, Format::Jpeg, picture(Image::rgb([40, 30]))).unwrap();
    let bytes = fs::read(&good).unwrap();
    let cut = folder.file("cut.png", &bytes[..bytes.len() / 2]);
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 0x10;
    let flipped = folder.file("flipped.png", &flipped);
    let jpeg = fs::read(&photo).unwrap();
    let head = folder.file("head.jpg", &jpeg[..20]);
    // A header that promises 0 x 5 pixels, its checksum right.
    let mut none = bytes.clone();
    none[16..24].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, 5]);
    let none = folder.file("none.png", &none);
    let (text, empty) = (folder.file("text.png", b"not a picture"), folder.file("empty.png", b""));
    let output = folder.0.join("out.png");
    let there = fs::read_dir(&folder.0).unwrap().count();
    let refused = |input: &Path, output: &Path, args: &[&str], part: &str| {
        PROGRAM.rejects(&[&[path(input), path(output)], args].concat(), part);
    };
    let grey = ["--ops", "grey"];
    for bad in [&cut, &flipped, &head, &none, &text, &empty] {
        let name = bad.file_name().unwrap().to_str().unwrap();
        refused(bad, &output, &grey, name);
    }
    refused(&folder.0.join("missing.png"), &output, &grey, "missing.png");
    refused(&folder.0, &output, &grey, "is a directory");
    refused(&good, &folder.0.join("out.bmp"), &grey, "must end with");
    refused(&good, &folder.0.join("no/folder/out.png"), &grey, "out.png");
    refused(&good, &output, &[], "--ops is missing");
    refused(&good, &output, &["--ops", ""], "must be grey, blur");
    refused(&good, &output, &["--ops", "grey,,blur"], "must be grey, blur");
    refused(&good, &output, &["--ops", "sharpen"], "must be grey, blur");
    refused(&good, &output, &["--ops", "grey=1"], "takes no value");
    refused(&good, &output, &["--ops", "blur=-1"], "whole number");
    refused(&good, &output, &["--ops", "blur=99999"], "radius");
    refused(&good, &output, &["--ops", "gaussian=0"], "sigma");
    refused(&good, &output, &["--ops", "gaussian=x"], "sigma");
    refused(&good, &output, &["--ops", "gaussian=1e9"], "radius");
    refused(&good, &output, &["--ops", "grey", "--ops", "sobel"], "--ops is given twice");
    refused(&good, &output, &["--frob"], "--frob");
    refused(&good, &output, &["third.png", "--ops", "grey"], "3 files named");
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), there, "something was left behind");
}
