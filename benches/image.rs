//! Images.

mod support;

use half::f16;
use support::{Bench, half, random};
use tilework::Result;
use tilework::image::Layout;
use tilework::prelude::*;
use tilework::program::Op;

fn main() -> Result<()> {
    support::groups(&[
        ("grey", grey),
        ("blur", blur),
        ("gaussian", gaussian),
        ("median", median),
        ("sobel", sobel),
        ("equalize", equalize),
    ])
}

/// Formats the size of an image.
fn name(image: Image, what: &str) -> String {
    let layout = if image.layout == Layout::Planar { " planar" } else { "" };
    format!("{}x{}x{}{layout}{what}", image.h, image.w, image.channels)
}

/// Images larger than any cache, with rows of partial words, and with colours in both layouts.
fn images(bench: &Bench) -> Vec<Image> {
    bench.scale(
        vec![
            Image::grey([8192, 8192]),
            Image::grey([16384, 16384]),
            Image::grey([8191, 8191]),
            Image::rgb([8192, 8192]),
            Image::rgb([8192, 8192]).planar(),
        ],
        vec![Image::grey([512, 512]), Image::rgb([256, 257])],
    )
}

/// Random elements of each type for the largest image, and memory for results.
struct Pixels {
    u8: (Buffer<u8>, Buffer<u8>),
    f16: (Buffer<f16>, Buffer<f16>),
    f32: (Buffer<f32>, Buffer<f32>),
}

impl Pixels {
    fn new(gpu: &Gpu, images: &[Image]) -> Result<Self> {
        let n = images.iter().map(|i| i.h * i.w * i.channels).max().unwrap_or(0);
        Ok(Self {
            u8: (random(gpu, n, |b| b as u8)?, gpu.alloc(n)?),
            f16: (random(gpu, n, half)?, gpu.alloc(n)?),
            f32: (random(gpu, n, share)?, gpu.alloc(n)?),
        })
    }

    /// Measures an op on each type that it takes.
    fn measure<D: Op<u8> + Op<f16> + Op<f32>>(&self, bench: &mut Bench, op: &D, size: &str) -> Result<()> {
        bench.op::<u8>(op, size, &[&self.u8.0, &self.u8.1])?;
        bench.op::<f16>(op, size, &[&self.f16.0, &self.f16.1])?;
        bench.op::<f32>(op, size, &[&self.f32.0, &self.f32.1])
    }
}

/// Uniform in [0, 1).
fn share(bits: u32) -> f32 {
    (bits >> 8) as f32 / 16_777_216.0
}

fn grey(bench: &mut Bench) -> Result<()> {
    let colours = [
        Image::rgb([8192, 8192]),
        Image::rgb([8191, 8191]),
        Image::rgba([8192, 8192]),
        Image::rgb([8192, 8192]).planar(),
    ];
    let images = bench.scale([&[Image::rgb([1024, 1024])], &colours[..]].concat(), vec![Image::rgb([512, 512])]);
    let pixels = Pixels::new(&bench.gpu, &images)?;
    for image in images {
        for v in Grey::variants() {
            pixels.measure(bench, &Grey::new(image).variant(v.name), &name(image, ""))?;
        }
    }
    Ok(())
}

fn blur(bench: &mut Bench) -> Result<()> {
    let images = images(bench);
    let pixels = Pixels::new(&bench.gpu, &images)?;
    for image in images {
        let many = image == Image::grey([8192, 8192]);
        for radius in if many { vec![1, 2, 4, 6, 8, 16, 64] } else { vec![2] } {
            for v in Blur::variants() {
                if radius > 8 && ["naive", "tiled"].contains(&v.name) {
                    continue;
                }
                let op = Blur::new(image, radius).variant(v.name);
                pixels.measure(bench, &op, &name(image, &format!(" radius {radius}")))?;
            }
        }
    }
    Ok(())
}

fn gaussian(bench: &mut Bench) -> Result<()> {
    let images = images(bench);
    let pixels = Pixels::new(&bench.gpu, &images)?;
    for image in images {
        let many = image == Image::grey([8192, 8192]);
        for sigma in if many { vec![0.5, 1.0, 1.5, 3.0, 6.0, 20.0] } else { vec![1.0] } {
            for v in Gaussian::variants() {
                if sigma > 2.0 && v.name == "naive" {
                    continue;
                }
                let op = Gaussian::new(image, sigma).variant(v.name);
                pixels.measure(bench, &op, &name(image, &format!(" sigma {sigma}")))?;
            }
        }
    }
    Ok(())
}

/// Large windows on a smaller image, and without `naive`: their time grows with the square of the size.
fn median(bench: &mut Bench) -> Result<()> {
    let images = images(bench);
    let pixels = Pixels::new(&bench.gpu, &images)?;
    let large = bench.scale(Image::grey([1024, 1024]), Image::grey([64, 64]));
    let cases = images.into_iter().flat_map(|image| {
        let many = image == Image::grey([8192, 8192]);
        let sizes = if many { &[3, 5, 7][..] } else { &[3] };
        sizes.iter().map(move |size| (image, *size))
    });
    for (image, size) in cases.chain([(large, 15), (large, 31)]) {
        for v in Median::variants() {
            if size > 5 && v.name == "naive" {
                continue;
            }
            let op = Median::new(image, size).variant(v.name);
            pixels.measure(bench, &op, &name(image, &format!(" size {size}")))?;
        }
    }
    Ok(())
}

fn sobel(bench: &mut Bench) -> Result<()> {
    let images = images(bench);
    let pixels = Pixels::new(&bench.gpu, &images)?;
    for image in images {
        for v in Sobel::variants() {
            pixels.measure(bench, &Sobel::new(image).variant(v.name), &name(image, ""))?;
        }
    }
    Ok(())
}

fn equalize(bench: &mut Bench) -> Result<()> {
    let images = images(bench);
    let pixels = Pixels::new(&bench.gpu, &images)?;
    for image in images {
        for v in Equalize::variants() {
            pixels.measure(bench, &Equalize::new(image).variant(v.name), &name(image, ""))?;
        }
    }
    Ok(())
}
