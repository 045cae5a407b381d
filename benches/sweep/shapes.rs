//! Shapes that nobody chose: sizes drawn evenly by their logarithm, the same with awkward remainders, and layers of
//! networks.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use tilework::DType;
use tilework::sparse::Csr;

/// An op and type of the sweep.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) op: &'static str,
    pub(crate) dtype: &'static str,
    /// Draws shape number `round` for a device of this part of a card's memory and speed; `None`: as the catalogue
    /// declares the op.
    pub(crate) draw: Option<fn(&mut Random, f64, usize) -> Drawn>,
}

/// A shape.
pub(crate) struct Drawn {
    /// Whether inputs after the first follow from it.
    pub(crate) supplied: bool,
    /// Shapes and types of the inputs.
    pub(crate) inputs: Vec<(Vec<usize>, &'static str)>,
    pub(crate) options: BTreeMap<String, String>,
    /// The structure of the sparse matrix: rows, columns, entries of a row, and how they lie.
    pub(crate) matrix: Value,
    /// Size on the axis of the picture: multiplications, or elements.
    pub(crate) work: f64,
}

impl Drawn {
    fn new(inputs: &[(&[usize], &'static str)], work: usize) -> Self {
        let inputs = inputs.iter().map(|(shape, dtype)| (shape.to_vec(), *dtype)).collect();
        Self { supplied: false, inputs, options: BTreeMap::new(), matrix: Value::Null, work: work as f64 }
    }

    /// A shape of the first input; the others follow from it.
    pub(crate) fn supplied(shape: &[usize], dtype: &'static str) -> Self {
        Self { supplied: true, ..Self::new(&[(shape, dtype)], 0) }
    }

    /// A shape of a list.
    pub(crate) fn listed(shape: &Value) -> Option<Self> {
        let inputs = shape["inputs"].as_array()?.iter().map(|input| {
            let sides = input[0].as_array()?.iter().map(|side| Some(side.as_u64()? as usize));
            let dtype = TYPES.into_iter().map(DType::name).find(|dtype| input[1] == *dtype)?;
            Some((sides.collect::<Option<Vec<_>>>()?, dtype))
        });
        let options = shape["options"].as_object()?.iter().map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())));
        Some(Self {
            supplied: shape["supplied"] == true,
            inputs: inputs.collect::<Option<_>>()?,
            options: options.collect::<Option<_>>()?,
            matrix: shape["matrix"].clone(),
            work: shape["work"].as_f64().unwrap_or_default(),
        })
    }

    fn option(mut self, name: &str, value: &dyn ToString) -> Self {
        self.options.insert(name.into(), value.to_string());
        self
    }

    fn flag(self, name: &str, on: bool) -> Self {
        if on { self.option(name, &"true") } else { self }
    }

    /// A product without transposes, of whole vectors.
    pub(crate) fn plain(mut self) -> Self {
        let whole = |side: &mut usize| *side = side.next_multiple_of(8);
        if let [(a, _), (b, _)] = &mut self.inputs[..] {
            let side = a.len().saturating_sub(2);
            if self.options.remove("trans-a").is_some() {
                a[side..].reverse();
            }
            if self.options.remove("trans-b").is_some() {
                b[side..].reverse();
            }
            a[side..].iter_mut().chain(&mut b[side..]).for_each(whole);
        }
        self
    }

    /// Inputs and options as one text.
    pub(crate) fn name(&self) -> String {
        let sides = |shape: &[usize]| shape.iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
        let mut parts: Vec<_> = self.inputs.iter().map(|(shape, _)| sides(shape)).collect();
        if let Value::Object(matrix) = &self.matrix {
            let of = |key: &str| matrix[key].to_string().replace('"', "");
            parts.insert(0, format!("{}x{} {} {}", of("rows"), of("cols"), of("kind"), of("entries")));
        }
        let options = self.options.iter().map(|(name, value)| match value.as_str() {
            "true" => name.clone(),
            value => format!("{name}={value}"),
        });
        parts.extend(options);
        parts.join(" ")
    }

    /// The matrix of an op on a sparse one. `benches/peers/sweep.py` forms the same.
    pub(crate) fn csr(&self) -> Option<Csr> {
        let number = |key: &str| self.matrix[key].as_u64().map(|x| x as usize);
        let (rows, cols, entries) = (number("rows")?, number("cols")?, number("entries")?);
        let mut csr = Csr { rows, cols, row_ptrs: vec![0], ..Csr::default() };
        for row in 0..rows {
            let count = match self.matrix["kind"].as_str()? {
                // Half of the rows are empty.
                "gaps" => 2 * entries * (row % 2),
                // Row lengths fall as 1 / (row + 1).
                "power" => (entries * rows / 12 / (row + 1)).max(entries / 2),
                _ => entries,
            };
            let count = count.min(cols);
            let first = row * 7919 % cols;
            // Increasing columns, evenly apart from a place that differs from row to row.
            let mut columns: Vec<u32> = (0..count).map(|i| ((first + i * cols / count) % cols) as u32).collect();
            if self.matrix["kind"] == "band" {
                let first = (row * cols / rows).min(cols - count);
                columns = (first..first + count).map(|x| x as u32).collect();
            }
            columns.sort_unstable();
            csr.col_idxs.extend(columns);
            csr.row_ptrs.push(csr.col_idxs.len() as u32);
        }
        csr.values = (0..csr.col_idxs.len()).map(|i| (i % 17) as f32 / 17.0 - 0.5).collect();
        Some(csr)
    }
}

/// The types of inputs.
const TYPES: [DType; 6] = [DType::F32, DType::F16, DType::I32, DType::U32, DType::U8, DType::I8];

pub(crate) fn dtype_of(name: &str) -> DType {
    TYPES.into_iter().find(|dtype| dtype.name() == name).unwrap_or(DType::F32)
}

/// Pseudo-random numbers.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        (0..8).for_each(|_| _ = random.next());
        random
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    pub(crate) fn unit(&mut self) -> f64 {
        self.next() as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn flip(&mut self) -> bool {
        self.unit() < 0.5
    }

    pub(crate) fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[(self.unit() * choices.len() as f64) as usize]
    }

    /// A size, evenly by its logarithm; in one case of three one beside a multiple of a tile, in one of three a
    /// multiple of 64.
    pub(crate) fn size(&mut self, least: usize, most: usize) -> usize {
        let (low, high) = ((least as f64).ln(), (most.max(least) as f64 + 1.0).ln());
        let size = ((low + self.unit() * (high - low)).exp() as usize).clamp(least, most.max(least));
        let near = (size / 64 * 64).max(1);
        let size = match self.of(&[0, 1, 2]) {
            0 => size,
            1 if size > 64 => near,
            2 if size > 16 => (size / 32 * 32).wrapping_add_signed(self.of(&[-1, 1])),
            _ => size,
        };
        size.clamp(least, most.max(least))
    }
}

/// Differs from kind to kind.
pub(crate) fn seed_of(kind: &Kind) -> u64 {
    kind.op.bytes().chain(kind.dtype.bytes()).fold(7, |seed, byte| seed * 31 + u64::from(byte)) << 32
}

/// Layers of language and vision models: tokens or pixels are drawn, these are neurons and features.
const LAYERS: [[usize; 2]; 12] = [
    [768, 768],
    [3072, 768],
    [768, 3072],
    [2304, 768],
    [4096, 4096],
    [11008, 4096],
    [4096, 11008],
    [1024, 4096],
    [50257, 768],
    [1000, 2048],
    [64, 147],
    [256, 1152],
];

fn gemm(random: &mut Random, part: f64, round: usize, dtype: &'static str) -> Drawn {
    let most = 3e11 * part;
    let [mut m, n, mut k] = if round % 3 == 2 {
        let [n, k] = random.of(&LAYERS);
        [random.of(&[1, 2, 4, 8, 16, 32, 77, 128, 197, 512, 1024, 2048]), n, k]
    } else {
        [random.size(1, 8192), random.size(1, 8192), random.size(1, 8192)]
    };
    while (m * n * k) as f64 > most {
        if m > k { m = m / 2 + m % 2 } else { k = k / 2 + k % 2 }
    }
    let (trans_a, trans_b) = (random.of(&[0, 0, 0, 1]) == 1, random.flip());
    let a = if trans_a { [k, m] } else { [m, k] };
    let b = if trans_b { [n, k] } else { [k, n] };
    Drawn::new(&[(&a, dtype), (&b, dtype)], m * n * k).flag("trans-a", trans_a).flag("trans-b", trans_b)
}

fn gemm_batched(random: &mut Random, part: f64, round: usize, dtype: &'static str) -> Drawn {
    let most = 1e11 * part;
    // Heads of attention, or anything.
    let [mut batch, m, n, k] = if round % 3 == 2 {
        let [t, d] = [random.of(&[77, 128, 197, 512, 1024]), random.of(&[32, 64, 80, 128])];
        let [n, k] = if random.flip() { [t, d] } else { [d, t] };
        [random.of(&[8, 12, 96, 192]), t, n, k]
    } else {
        [random.size(2, 4096), random.size(4, 512), random.size(4, 512), random.size(4, 512)]
    };
    while (batch * m * n * k) as f64 > most && batch > 1 {
        batch /= 2;
    }
    let (trans_a, trans_b) = (random.of(&[0, 0, 0, 1]) == 1, random.flip());
    let a = if trans_a { [batch, k, m] } else { [batch, m, k] };
    let b = if trans_b { [batch, n, k] } else { [batch, k, n] };
    let drawn = Drawn::new(&[(&a, dtype), (&b, dtype)], batch * m * n * k);
    drawn.flag("trans-a", trans_a).flag("trans-b", trans_b)
}

/// Rows and columns of at most this many elements.
fn matrix(random: &mut Random, most: f64) -> [usize; 2] {
    let rows = random.size(1, (most / 4.0).max(2.0) as usize);
    [rows, random.size(1, (most / rows as f64).max(1.0) as usize)]
}

fn gemv(random: &mut Random, part: f64, round: usize) -> Drawn {
    let [m, k] = if round % 3 == 2 { random.of(&LAYERS) } else { matrix(random, 2e8 * part) };
    let trans = random.flip();
    Drawn::new(&[(&[m, k], "f32"), (&[if trans { m } else { k }], "f32")], m * k).flag("trans", trans)
}

fn reduce(random: &mut Random, part: f64, _: usize) -> Drawn {
    let [rows, n] = matrix(random, 2e8 * part);
    let axis = random.of(&["all", "last"]);
    Drawn::new(&[(&[rows, n], "f32")], rows * n)
        .option("op", &random.of(&["sum", "max", "argmax"]))
        .option("axis", &axis)
}

fn scan(random: &mut Random, part: f64, _: usize) -> Drawn {
    let [rows, n] = matrix(random, 1e8 * part);
    let one = random.flip();
    let shape = if one { vec![rows * n] } else { vec![rows, n] };
    Drawn::new(&[(&shape, "f32")], rows * n).flag("exclusive", random.flip())
}

fn softmax(random: &mut Random, part: f64, round: usize) -> Drawn {
    let [rows, n] = match round % 3 {
        2 => [random.of(&[1, 8, 64, 512, 4096]), random.of(&[77, 197, 1024, 4096, 32000, 50257])],
        _ => matrix(random, 1e8 * part),
    };
    Drawn::new(&[(&[rows, n], "f32")], rows * n)
}

fn sort(random: &mut Random, part: f64, _: usize) -> Drawn {
    let n = random.size(1000, (5e7 * part) as usize);
    let keys: &[usize] = &[n];
    match random.flip() {
        true => Drawn::new(&[(keys, "u32"), (keys, "u32")], n),
        false => Drawn::new(&[(keys, "u32")], n),
    }
}

fn transpose(random: &mut Random, part: f64, _: usize) -> Drawn {
    let [rows, cols] = matrix(random, 2e8 * part);
    Drawn::new(&[(&[rows, cols], "f32")], rows * cols)
}

fn sparse(random: &mut Random, part: f64, columns: Option<usize>) -> Drawn {
    let rows = random.size(100, (1e6 * part.max(1e-2)) as usize);
    let cols = if random.flip() { rows } else { random.size(100, 1_000_000) };
    let most = (2e7 * part) / rows as f64;
    let entries = random.size(1, (most.max(1.0) as usize).min(cols));
    let kind = random.of(&["random", "band", "gaps", "power"]);
    let b = match columns {
        Some(n) => vec![cols, n],
        None => vec![cols],
    };
    let drawn = Drawn::new(&[(&b, "f32")], rows * entries * columns.unwrap_or(1));
    Drawn { matrix: json!({"rows": rows, "cols": cols, "entries": entries, "kind": kind}), ..drawn }
}

/// Channels, side, filters, filter side and stride of layers of convolution.
const CONVOLUTIONS: [[usize; 5]; 12] = [
    [3, 224, 64, 7, 2],
    [64, 56, 64, 1, 1],
    [64, 56, 64, 3, 1],
    [256, 56, 128, 1, 1],
    [128, 56, 128, 3, 2],
    [512, 28, 256, 1, 1],
    [256, 28, 256, 3, 1],
    [256, 14, 1024, 1, 1],
    [512, 14, 512, 3, 1],
    [1024, 14, 2048, 1, 2],
    [512, 7, 512, 3, 1],
    [2048, 7, 512, 1, 1],
];

fn conv(random: &mut Random, part: f64, round: usize) -> Drawn {
    let [channels, side, filters, edge, stride] = if round.is_multiple_of(2) {
        random.of(&CONVOLUTIONS)
    } else {
        let edge = random.of(&[1, 3, 5]);
        [random.size(1, 512), random.size(7, 160), random.size(1, 512), edge, random.of(&[1, 1, 2])]
    };
    let mut images = random.of(&[1, 1, 4, 8, 32]);
    let outputs = (side.div_ceil(stride)).pow(2);
    let work = |images: usize| images * outputs * filters * channels * edge * edge;
    while work(images) as f64 > 1e11 * part && images > 1 {
        images /= 2;
    }
    let inputs: [(&[usize], _); 2] =
        [(&[images, channels, side, side], "f32"), (&[filters, channels, edge, edge], "f32")];
    Drawn::new(&inputs, work(images)).option("stride", &stride).option("pad", &(edge / 2))
}

fn attention(random: &mut Random, part: f64, dtype: &'static str) -> Drawn {
    let d = random.of(&[32, 64, 64, 80, 128, 128]);
    let (mut b, h) = (random.of(&[1, 2, 8]), random.of(&[8, 12, 16, 32]));
    let g = if random.flip() { h } else { (h / 4).max(1) };
    let s = random.size(64, 4096);
    // Prefill, a few queries, or one.
    let t = match random.of(&[0, 0, 0, 1, 2]) {
        0 => s,
        1 => random.size(1, 64).min(s),
        _ => 1,
    };
    while (b * h * t * s * d) as f64 > 5e10 * part && b > 1 {
        b /= 2;
    }
    let kv: &[usize] = &[b, g, s, d];
    let inputs: [(&[usize], _); 3] = [(&[b, h, t, d], dtype), (kv, dtype), (kv, dtype)];
    Drawn::new(&inputs, b * h * t * s * d).flag("causal", random.flip())
}

/// One query or a few of each of several sequences, as decoding has them.
#[cfg(feature = "cuda")]
fn decode(random: &mut Random, _: f64, _: usize) -> Drawn {
    let d = random.of(&[64, 80, 128, 128]);
    let g = random.of(&[1, 2, 4, 8]);
    let h = g * random.of(&[1, 4, 4, 8]);
    let (b, t) = (random.of(&[1, 1, 4, 8, 16, 32, 64]), random.of(&[1, 1, 1, 2, 4]));
    let most = (1 << 26) / (b * g * d);
    let s = random.size(128, most.min(1 << 17));
    let kv: &[usize] = &[b, g, s, d];
    let inputs: [(&[usize], _); 3] = [(&[b, h, t, d], "f16"), (kv, "f16"), (kv, "f16")];
    Drawn::new(&inputs, b * h * t * s * d)
}

/// Drawn on CUDA only.
#[cfg(feature = "cuda")]
pub(crate) const DECODE: Kind = Kind { op: "attention", dtype: "f16", draw: Some(decode) };

/// The ops and types with a list of their own, which `benches/peers/sweep.py` knows too.
pub(crate) const KINDS: &[Kind] = &[
    Kind { op: "gemm", dtype: "f32", draw: Some(|r, part, i| gemm(r, part, i, "f32")) },
    Kind { op: "gemm", dtype: "f16", draw: Some(|r, part, i| gemm(r, part, i, "f16")) },
    Kind { op: "gemm-batched", dtype: "f32", draw: Some(|r, part, i| gemm_batched(r, part, i, "f32")) },
    Kind { op: "gemm-batched", dtype: "f16", draw: Some(|r, part, i| gemm_batched(r, part, i, "f16")) },
    Kind { op: "gemv", dtype: "f32", draw: Some(gemv) },
    Kind { op: "reduce", dtype: "f32", draw: Some(reduce) },
    Kind { op: "scan", dtype: "f32", draw: Some(scan) },
    Kind { op: "softmax", dtype: "f32", draw: Some(softmax) },
    Kind { op: "sort", dtype: "u32", draw: Some(sort) },
    Kind { op: "transpose", dtype: "f32", draw: Some(transpose) },
    Kind { op: "spmv", dtype: "f32", draw: Some(|r, part, _| sparse(r, part, None)) },
    Kind {
        op: "spmm",
        dtype: "f32",
        draw: Some(|r, part, _| {
            let columns = r.of(&[1, 2, 4, 8, 16, 32, 100]);
            sparse(r, part, Some(columns))
        }),
    },
    Kind { op: "conv", dtype: "f32", draw: Some(conv) },
    Kind { op: "attention", dtype: "f32", draw: Some(|r, part, _| attention(r, part, "f32")) },
    Kind { op: "attention", dtype: "f16", draw: Some(|r, part, _| attention(r, part, "f16")) },
];
