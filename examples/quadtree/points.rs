//! Reads or generates points.

use super::common::npy::read_header;
use super::common::{Failure, Random, open_file, room_for};
use npyz::{DType, Endianness, NpyFile, Order, TypeChar};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// x and y.
pub(crate) type Point = [f32; 2];

/// Larger coordinates are left out like infinite ones: squares around them overflow.
const GREATEST: f32 = 1e37;

/// A distribution of generated points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Uniform,
    Clusters,
    Spiral,
}

impl Shape {
    pub(crate) const NAMES: &str = "uniform, clusters or spiral";

    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "uniform" => Some(Self::Uniform),
            "clusters" => Some(Self::Clusters),
            "spiral" => Some(Self::Spiral),
            _ => None,
        }
    }
}

/// Reads points from a file: a NumPy array of f32 with two columns, or text with two numbers per line.
pub(crate) fn read(path: &Path) -> Result<Vec<Point>, Failure> {
    let (mut file, _) = open_file(path)?;
    let mut start = Vec::new();
    file.by_ref().take(6).read_to_end(&mut start).map_err(|e| Failure::file(path, &e))?;
    let read = if start == b"\x93NUMPY" { numpy(&start, file) } else { text(&start, file) };
    read.map_err(|e| Failure::file(path, &e))
}

fn bad(text: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.into())
}

fn numpy(start: &[u8], file: File) -> io::Result<Vec<Point>> {
    let mut reader = BufReader::with_capacity(1 << 20, start.chain(file));
    let header = read_header(&mut reader)?;
    let wanted = "expected an array of f32 with two columns, little-endian and in C order";
    let DType::Plain(kind) = header.dtype() else { return Err(bad(wanted)) };
    let plain = kind.type_char() == TypeChar::Float
        && kind.size_field() == 4
        && kind.endianness() != Endianness::Big
        && header.order() == Order::C;
    let shape = header.shape().to_vec();
    let [rows, 2] = shape[..] else { return Err(bad(format!("the shape is {shape:?}; {wanted}"))) };
    if !plain {
        return Err(bad(format!("the elements are {kind}, in {:?} order; {wanted}", header.order())));
    }
    let elements = NpyFile::with_header(header, reader).data::<f32>().map_err(|e| bad(e.to_string()))?;
    let (mut points, mut x) = (Vec::new(), None);
    for element in elements {
        let element = element.map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => bad(format!("the file ends after {} of {rows} points", points.len())),
            _ => e,
        })?;
        match x.take() {
            None => x = Some(element),
            Some(x) => points.push([x, element]),
        }
    }
    Ok(points)
}

fn text(start: &[u8], mut file: File) -> io::Result<Vec<Point>> {
    let mut bytes = start.to_vec();
    file.read_to_end(&mut bytes)?;
    let text = String::from_utf8(bytes).map_err(|_| bad("neither a NumPy file nor text"))?;
    let mut points = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fields = line.split(|c: char| c.is_whitespace() || ",;".contains(c)).filter(|f| !f.is_empty());
        let fields: Vec<_> = fields.map(str::parse::<f32>).collect();
        match &fields[..] {
            [Ok(x), Ok(y)] => points.push([*x, *y]),
            // Column titles.
            [Err(_), Err(_)] if points.is_empty() && i == 0 => {}
            _ => {
                let line: String = line.chars().take(40).collect();
                return Err(bad(format!("line {}: `{line}`: expected two numbers", i + 1)));
            }
        }
    }
    Ok(points)
}

/// Keeps points of finite size, and counts the others.
pub(crate) fn finite(mut points: Vec<Point>) -> (Vec<Point>, usize) {
    let all = points.len();
    // False for NaN.
    points.retain(|point| point.iter().all(|x| x.abs() < GREATEST));
    let others = all - points.len();
    (points, others)
}

impl Random {
    /// Uniform in [0, 1).
    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 * 2f64.powi(-53)
    }

    /// Returns two independent normal numbers (Box and Muller, 1958).
    fn normal(&mut self) -> [f64; 2] {
        let length = (-2.0 * (1.0 - self.fraction()).ln()).sqrt();
        let angle = std::f64::consts::TAU * self.fraction();
        [length * angle.cos(), length * angle.sin()]
    }
}

/// Generates `n` points by seed, most of them in the unit square.
pub(crate) fn generate(shape: Shape, n: usize, seed: u64) -> Result<Vec<Point>, Failure> {
    room_for(&format!("{n} points"), n, size_of::<Point>())?;
    let mut random = Random::new(seed);
    let clusters: Vec<_> = (0..16)
        .map(|_| {
            let spread = 0.006 * 10f64.powf(random.fraction());
            ([0.1 + 0.8 * random.fraction(), 0.1 + 0.8 * random.fraction()], spread)
        })
        .collect();
    let point = |_| -> Point {
        let [x, y] = match shape {
            Shape::Uniform => [random.fraction(), random.fraction()],
            Shape::Clusters if random.fraction() < 0.02 => [random.fraction(), random.fraction()],
            Shape::Clusters => {
                let (centre, spread) = clusters[random.next() as usize % clusters.len()];
                let [dx, dy] = random.normal();
                [centre[0] + spread * dx, centre[1] + spread * dy]
            }
            Shape::Spiral => {
                // Two arms with one and a half turns, wider at the ends.
                let way = random.fraction().sqrt();
                let arm = (random.next() % 2) as f64 / 2.0;
                let angle = std::f64::consts::TAU * (1.5 * way + arm);
                let [dx, dy] = random.normal().map(|d| (0.004 + 0.03 * way) * d);
                [0.5 + 0.42 * way * angle.cos() + dx, 0.5 + 0.42 * way * angle.sin() + dy]
            }
        };
        [x as f32, y as f32]
    };
    Ok((0..n).map(point).collect())
}
