//! Fully connected layers, stored in several formats.

use super::{Held, Network};
use half::f16;
use tilework::program::Op;
use tilework::quantize::{Code, Dequantize, GemmInt8, Quantize};
use tilework::{Activation, Axpy, Buffer, DType, Gemm, Gpu, Precision, Result};

/// How a layer's weights are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    F32,
    F16,
    /// Bytes with a scale per output. The other factor is quantised, too, token by token.
    Int8,
    /// Bytes with a scale per output, converted to floats before use.
    Fp8,
}

impl Storage {
    pub(crate) const ALL: [Self; 4] = [Self::F32, Self::F16, Self::Int8, Self::Fp8];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Int8 => "int8",
            Self::Fp8 => "fp8",
        }
    }
}

/// A fully connected layer: a row of weights per output, and biases.
pub(crate) struct Linear {
    pub(crate) weight: Vec<f32>,
    pub(crate) bias: Vec<f32>,
    pub(crate) outputs: usize,
    pub(crate) inputs: usize,
}

/// The same on the device.
pub(crate) struct HeldLinear {
    weight: Weight,
    bias: Held,
    pub(crate) outputs: usize,
    pub(crate) inputs: usize,
}

enum Weight {
    Floats(Held),
    Bytes { bytes: Held, scales: Held },
}

impl HeldLinear {
    /// Uploads a layer for products with floats of `dtype`.
    pub(crate) fn new(gpu: &Gpu, layer: &Linear, storage: Storage, dtype: DType) -> Result<Self> {
        let Linear { outputs, inputs, .. } = *layer;
        let weight = match storage {
            Storage::F32 => Weight::Floats(Held::upload(gpu, dtype, &layer.weight)?),
            Storage::F16 => {
                let rounded: Vec<f32> = layer.weight.iter().map(|&w| f16::from_f32(w).to_f32()).collect();
                Weight::Floats(Held::upload(gpu, dtype, &rounded)?)
            }
            Storage::Int8 => {
                let (bytes, scales) = quantized::<i8>(gpu, layer)?;
                Weight::Bytes { bytes, scales }
            }
            Storage::Fp8 => {
                let (bytes, scales) = quantized::<u8>(gpu, layer)?;
                let floats = Held::alloc(gpu, DType::F32, outputs * inputs)?;
                let mut network = Network::default();
                let back = Dequantize::<u8>::new(outputs, inputs);
                network.add::<f32>(gpu, &back, &[(&bytes, 0), (&scales, 0), (&floats, 0)])?;
                network.run(gpu)?;
                Weight::Floats(floats)
            }
        };
        Ok(Self { weight, bias: Held::upload(gpu, dtype, &layer.bias)?, outputs, inputs })
    }
}

/// Quantises a layer's weights, with a scale per output.
fn quantized<Q: Code>(gpu: &Gpu, layer: &Linear) -> Result<(Held, Held)>
where
    Quantize<Q>: Op<f32>,
    Held: From<Buffer<Q>>,
{
    let weight = Held::upload(gpu, DType::F32, &layer.weight)?;
    let bytes = Held::from(gpu.alloc::<Q>(layer.weight.len())?);
    let scales = Held::alloc(gpu, DType::F32, layer.outputs)?;
    let mut network = Network::default();
    let op = Quantize::<Q>::new(layer.outputs, layer.inputs);
    network.add::<f32>(gpu, &op, &[(&weight, 0), (&bytes, 0), (&scales, 0)])?;
    network.run(gpu)?;
    Ok((bytes, scales))
}

/// A network under construction, for a number of rows of floats.
pub(crate) struct Building<'a> {
    pub(crate) gpu: &'a Gpu,
    pub(crate) dtype: DType,
    pub(crate) rows: usize,
    pub(crate) network: Network,
    scratch: Scratch,
}

/// Buffers of a product of bytes: the quantised factor, and a result to be added.
#[derive(Clone)]
struct Scratch {
    bytes: Held,
    scales: Held,
    sums: Held,
}

impl<'a> Building<'a> {
    /// Starts a network with layers of at most `widest` inputs and outputs.
    pub(crate) fn new(gpu: &'a Gpu, dtype: DType, rows: usize, storage: Storage, widest: usize) -> Result<Self> {
        let n = if storage == Storage::Int8 { rows * widest } else { 0 };
        let scratch = Scratch {
            bytes: Held::alloc(gpu, DType::I8, n)?,
            scales: Held::alloc(gpu, DType::F32, rows)?,
            sums: Held::alloc(gpu, DType::F32, n)?,
        };
        Ok(Self { gpu, dtype, rows, network: Network::default(), scratch })
    }

    /// Adds an op on whole float buffers.
    pub(crate) fn floats(&mut self, op: &(impl Op<f32> + Op<f16>), operands: &[&Held]) -> Result<()> {
        let operands: Vec<_> = operands.iter().map(|held| (*held, 0)).collect();
        self.network.add_floats(self.gpu, self.dtype, op, &operands)
    }

    /// Adds `y = activation(x layer)`.
    pub(crate) fn linear(&mut self, layer: &HeldLinear, activation: Activation, x: &Held, y: &Held) -> Result<()> {
        match &layer.weight {
            Weight::Floats(weight) => {
                let gemm = Gemm::new(self.rows, layer.outputs, layer.inputs).trans_b();
                self.product(gemm.activation(activation), [x, weight, &layer.bias, y])
            }
            Weight::Bytes { bytes, scales } => {
                let Scratch { bytes: x_bytes, scales: x_scales, .. } = self.scratch.clone();
                let quantize = Quantize::<i8>::new(self.rows, layer.inputs);
                self.network.add::<f32>(self.gpu, &quantize, &[(x, 0), (&x_bytes, 0), (&x_scales, 0)])?;
                let gemm = GemmInt8::new(self.rows, layer.outputs, layer.inputs).trans_b();
                let gemm = gemm.scaled().activation(activation).with_bias();
                let factors = [&x_bytes, bytes, &x_scales, scales].map(|held| (held, 0));
                self.network.add::<f32>(self.gpu, &gemm, &[factors.as_slice(), &[(&layer.bias, 0), (y, 0)]].concat())
            }
        }
    }

    /// Adds `y = x layer + y`.
    pub(crate) fn linear_added(&mut self, layer: &HeldLinear, x: &Held, y: &Held) -> Result<()> {
        match &layer.weight {
            Weight::Floats(weight) => {
                let gemm = Gemm::new(self.rows, layer.outputs, layer.inputs).trans_b().beta(1.0);
                self.product(gemm, [x, weight, &layer.bias, y])
            }
            Weight::Bytes { .. } => {
                let sums = self.scratch.sums.clone();
                self.linear(layer, Activation::None, x, &sums)?;
                self.floats(&Axpy::new(self.rows * layer.outputs, 1.0), &[&sums, y])
            }
        }
    }

    /// Adds a product with a bias, on tensor cores for f16 if there are any.
    fn product(&mut self, gemm: Gemm, operands: [&Held; 4]) -> Result<()> {
        let tensor = gemm.clone().precision(Precision::Tensor).with_bias();
        let fits = self.dtype == DType::F16 && Op::<f16>::lower(&tensor, self.gpu.profile()).is_ok();
        self.floats(&if fits { tensor } else { gemm.with_bias() }, &operands)
    }
}
