//! Images.

mod support;

use support::{Bench, Case, random};
use tilework::image::Layout;
use tilework::prelude::*;
use tilework::program::Op;
use tilework::{Element, Result};

/// The cases of an op.
type Group = fn(&mut Bench) -> Result<()>;

fn main() -> Result<()> {
    support::each(family)
}

fn family(bench: &mut Bench) -> Result<()> {
    let groups: [(&str, Group); 6] = [
        ("grey", grey),
        ("blur", blur),
        ("gaussian", gaussian),
        ("median", median),
        ("sobel", sobel),
        ("equalize", equalize),
    ];
    for (name, group) in groups {
        if bench.wants(name) {
            group(bench)?;
        }
    }
    Ok(())
}

/// Measures one way to run an op; one that does not fit is left out.
fn measure<T: Element, D: Op<T>>(
    bench: &mut Bench,
    (op, variant, size): (&str, &str, &str),
    desc: &D,
    (x, y): &(Buffer<T>, Buffer<T>),
) -> Result<()> {
    let Ok(plan) = desc.plan::<T>(&bench.gpu).map(tilework::Plan::into_executable) else { return Ok(()) };
    let [input, output] = [0, 1].map(|i| plan.program().operands[i].len);
    let (dtype, cost) = (T::DTYPE.to_string(), plan.program().cost);
    let case = Case { op, variant, dtype: &dtype, size: size.to_owned(), cost };
    let (x, y) = (x.slice(..input)?, y.slice(..output)?);
    bench.device(&case, |rec| plan.record(rec, &[x.untyped(), y.untyped()]));
    Ok(())
}

/// The size, for rows.
fn name(image: Image, what: &str) -> String {
    let layout = if image.layout == Layout::Planar { " planar" } else { "" };
    format!("{}x{}x{}{layout}{what}", image.h, image.w, image.channels)
}

/// Larger than any cache; rows that are no whole words; colours in both layouts.
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

/// Random elements of both types, as many as the largest image has, and room for results.
struct Pixels {
    u8: (Buffer<u8>, Buffer<u8>),
    f32: (Buffer<f32>, Buffer<f32>),
}

impl Pixels {
    fn new(gpu: &Gpu, images: &[Image]) -> Result<Self> {
        let n = images.iter().map(|i| i.h * i.w * i.channels).max().unwrap_or(0);
        Ok(Self {
            u8: (random(gpu, n, |b| b as u8)?, gpu.alloc(n)?),
            f32: (random(gpu, n, share)?, gpu.alloc(n)?),
        })
    }

    /// Measures one way to run an op, on both types.
    fn measure<D>(&self, bench: &mut Bench, case: (&str, &str, &str), desc: &D) -> Result<()>
    where
        D: Op<u8> + Op<f32>,
    {
        measure(bench, case, desc, &self.u8)?;
        measure(bench, case, desc, &self.f32)
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
    let images =
        bench.scale([&[Image::rgb([1024, 1024])], &colours[..]].concat(), vec![Image::rgb([512, 512])]);
    let pixels = Pixels::new(&bench.gpu, &images)?;
    for image in images {
        for v in Grey::variants() {
            let desc = Grey::new(image).variant(v.name);
            pixels.measure(bench, ("grey", v.name, &name(image, "")), &desc)?;
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
                let desc = Blur::new(image, radius).variant(v.name);
                let size = name(image, &format!(" radius {radius}"));
                pixels.measure(bench, ("blur", v.name, &size), &desc)?;
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
                let desc = Gaussian::new(image, sigma).variant(v.name);
                let size = name(image, &format!(" sigma {sigma}"));
                pixels.measure(bench, ("gaussian", v.name, &size), &desc)?;
            }
        }
    }
    Ok(())
}

fn median(bench: &mut Bench) -> Result<()> {
    let images = images(bench);
    let pixels = Pixels::new(&bench.gpu, &images)?;
    for image in images {
        let many = image == Image::grey([8192, 8192]);
        for size in if many { vec![3, 5, 7, 15, 31] } else { vec![3] } {
            for v in Median::variants() {
                let desc = Median::new(image, size).variant(v.name);
                pixels.measure(bench, ("median", v.name, &name(image, &format!(" size {size}"))), &desc)?;
            }
        }
    }
    Ok(())
}

fn sobel(bench: &mut Bench) -> Result<()> {
    let images = images(bench);
    let pixels = Pixels::new(&bench.gpu, &images)?;
    for image in images {
        for v in Sobel::variants() {
            let desc = Sobel::new(image).variant(v.name);
            pixels.measure(bench, ("sobel", v.name, &name(image, "")), &desc)?;
        }
    }
    Ok(())
}

fn equalize(bench: &mut Bench) -> Result<()> {
    let images = images(bench);
    let pixels = Pixels::new(&bench.gpu, &images)?;
    for image in images {
        for v in Equalize::variants() {
            let desc = Equalize::new(image).variant(v.name);
            pixels.measure(bench, ("equalize", v.name, &name(image, "")), &desc)?;
        }
    }
    Ok(())
}
