//! A transformer on the device with its gradients: RMS norm, grouped heads, ReLU, learned positions, no biases.

use super::common::Random;
use super::common::network::{Held, Network};
use super::weights::{EPS, Shape};
use tilework::attention::{Attention, AttentionBackward};
use tilework::nn::{Adam, BiasBackward, CrossEntropy, RmsNormBackward};
use tilework::program::Op;
use tilework::{Activation, ActivationBackward, Axpy, Buffer, DType, Gather, Gemm, Gpu, Result, RmsNorm, Zip, ZipFn};

/// A tensor's place among the parameters, and among their gradients.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tensor {
    pub(crate) at: usize,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

impl Tensor {
    pub(crate) fn len(self) -> usize {
        self.rows * self.columns
    }
}

#[derive(Debug, Clone, Copy)]
struct LayerTensors {
    before: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attended: Tensor,
    between: Tensor,
    up: Tensor,
    down: Tensor,
}

/// The places of all tensors.
#[derive(Debug, Clone)]
pub(crate) struct Tensors {
    embeddings: Tensor,
    positions: Tensor,
    layers: Vec<LayerTensors>,
    norm: Tensor,
    head: Tensor,
    /// All of them, in order.
    pub(crate) all: Vec<Tensor>,
    /// Elements, padding included.
    pub(crate) len: usize,
}

impl Tensors {
    pub(crate) fn new(shape: &Shape, symbols: usize) -> Self {
        let (mut all, mut len) = (Vec::new(), 0usize);
        let mut tensor = |rows, columns| {
            // Bindings begin at multiples of 256 bytes.
            let tensor = Tensor { at: len.next_multiple_of(64), rows, columns };
            len = tensor.at + tensor.len();
            all.push(tensor);
            tensor
        };
        let (width, keys) = (shape.width, shape.kv_heads * shape.size());
        let (embeddings, positions) = (tensor(symbols, width), tensor(shape.context, width));
        let layers = (0..shape.layers)
            .map(|_| LayerTensors {
                before: tensor(1, width),
                query: tensor(width, width),
                key: tensor(width, keys),
                value: tensor(width, keys),
                attended: tensor(width, width),
                between: tensor(1, width),
                up: tensor(width, shape.inner()),
                down: tensor(shape.inner(), width),
            })
            .collect();
        let (norm, head) = (tensor(1, width), tensor(width, symbols));
        Self { embeddings, positions, layers, norm, head, all, len }
    }

    /// Returns random parameters; the factors of norms are 1.
    pub(crate) fn initial(&self, seed: u64) -> Vec<f32> {
        let mut random = Random::new(seed);
        let mut parameters = vec![0.0; self.len];
        for tensor in &self.all {
            let (around, spread) = match tensor.rows {
                1 => (1.0, 0.0),
                rows => (0.0, 1.0 / (rows as f64).sqrt()),
            };
            let values = random.numbers(tensor.len(), around, spread);
            parameters[tensor.at..][..tensor.len()].copy_from_slice(&values);
        }
        parameters
    }
}

/// Rows from token order to head order and back: permutations for `Gather`.
struct Turns {
    to_heads: Held,
    to_tokens: Held,
}

impl Turns {
    fn new(gpu: &Gpu, batch: usize, tokens: usize, heads: usize) -> Result<Self> {
        let rows = |a: usize, b: usize| {
            let of = move |i: usize| (i / (a * b), i / b % a, i % b);
            // Row (sequence, i, j) of the result is row (sequence, j, i) of the source.
            (0..batch * a * b).map(move |at| {
                let (sequence, i, j) = of(at);
                (sequence * a * b + j * a + i) as u32
            })
        };
        let held = |rows: Vec<u32>| -> Result<Held> { Ok(gpu.upload(&rows)?.into()) };
        Ok(Self { to_heads: held(rows(heads, tokens).collect())?, to_tokens: held(rows(tokens, heads).collect())? })
    }
}

/// What the backward pass needs of a layer.
struct Kept {
    x: Held,
    normed: Held,
    /// Queries, keys and values, head by head.
    heads: [Held; 3],
    attended: Held,
    between: Held,
    normed_between: Held,
    wide: Held,
}

/// A pass over `batch` pieces of the context's length: planned ops and their buffers.
pub(crate) struct Forward {
    gpu: Gpu,
    shape: Shape,
    batch: usize,
    symbols: usize,
    tensors: Tensors,
    parameters: Held,
    network: Network,
    pub(crate) ids: Buffer<u32>,
    turns: [Turns; 2],
    layers: Vec<Kept>,
    last: Held,
    normed: Held,
    pub(crate) logits: Buffer<f32>,
}

impl Forward {
    pub(crate) fn new(gpu: &Gpu, shape: Shape, batch: usize, symbols: usize, parameters: &Buffer<f32>) -> Result<Self> {
        let tokens = shape.context;
        let rows = batch * tokens;
        let logits = gpu.alloc::<f32>(rows * symbols)?;
        let mut this = Self {
            gpu: gpu.clone(),
            shape,
            batch,
            symbols,
            tensors: Tensors::new(&shape, symbols),
            parameters: parameters.clone().into(),
            network: Network::default(),
            ids: gpu.alloc_zeroed::<u32>(rows)?,
            turns: [Turns::new(gpu, batch, tokens, shape.heads)?, Turns::new(gpu, batch, tokens, shape.kv_heads)?],
            layers: Vec::new(),
            last: Held::alloc(gpu, DType::F32, 0)?,
            normed: Held::alloc(gpu, DType::F32, 0)?,
            logits: logits.clone(),
        };
        let places: Vec<u32> = (0..rows).map(|row| (row % tokens) as u32).collect();
        let (places, ids) = (Held::from(gpu.upload(&places)?), Held::from(this.ids.clone()));
        let [embeddings, positions] = [this.tensors.embeddings, this.tensors.positions];
        let words = this.gathered((&this.parameters.clone(), embeddings.at), [embeddings.rows, shape.width], &ids)?;
        let places = this.gathered((&this.parameters.clone(), positions.at), [positions.rows, shape.width], &places)?;
        let mut x = this.sum(&words, &places)?;
        for layer in this.tensors.layers.clone() {
            x = this.layer(layer, x)?;
        }
        this.normed = this.norm(&x, this.tensors.norm)?;
        this.last = x;
        let head = this.tensors.head;
        let gemm = Gemm::new(rows, head.columns, head.rows);
        let (normed, parameters) = (this.normed.clone(), this.parameters.clone());
        this.add(&gemm, &[(&normed, 0), (&parameters, head.at), (&logits.into(), 0)])?;
        Ok(this)
    }

    fn rows(&self) -> usize {
        self.batch * self.shape.context
    }

    fn alloc(&self, columns: usize) -> Result<Held> {
        Held::alloc(&self.gpu, DType::F32, self.rows() * columns)
    }

    fn add(&mut self, op: &impl Op<f32>, operands: &[(&Held, usize)]) -> Result<()> {
        self.network.add::<f32>(&self.gpu, op, operands)
    }

    /// Adds `table[indices]`, for as many indices as the result has rows.
    fn gathered(&mut self, table: (&Held, usize), extents: [usize; 2], indices: &Held) -> Result<Held> {
        let output = self.alloc(extents[1])?;
        self.add(&Gather::new(extents, self.rows()), &[table, (indices, 0), (&output, 0)])?;
        Ok(output)
    }

    fn sum(&mut self, x: &Held, y: &Held) -> Result<Held> {
        let (n, z) = (self.rows() * self.shape.width, self.alloc(self.shape.width)?);
        self.add(&Zip::new(ZipFn::Add, n), &[(x, 0), (y, 0), (&z, 0)])?;
        Ok(z)
    }

    fn norm(&mut self, x: &Held, gamma: Tensor) -> Result<Held> {
        let (op, y) = (RmsNorm::new(self.rows(), gamma.columns).eps(EPS), self.alloc(gamma.columns)?);
        let parameters = self.parameters.clone();
        self.add(&op, &[(x, 0), (&parameters, gamma.at), (&y, 0)])?;
        Ok(y)
    }

    fn product(&mut self, x: &Held, weight: Tensor, activation: Activation) -> Result<Held> {
        let gemm = Gemm::new(self.rows(), weight.columns, weight.rows).activation(activation);
        let (y, parameters) = (self.alloc(weight.columns)?, self.parameters.clone());
        self.add(&gemm, &[(x, 0), (&parameters, weight.at), (&y, 0)])?;
        Ok(y)
    }

    /// Adds the reordering of rows of heads.
    fn turned(&mut self, x: &Held, heads: usize, to_heads: bool) -> Result<Held> {
        let (rows, size) = (self.rows() * heads, self.shape.size());
        let turns = &self.turns[usize::from(heads != self.shape.heads)];
        let order = if to_heads { &turns.to_heads } else { &turns.to_tokens }.clone();
        let y = self.alloc(heads * size)?;
        self.add(&Gather::new([rows, size], rows), &[(x, 0), (&order, 0), (&y, 0)])?;
        Ok(y)
    }

    fn layer(&mut self, layer: LayerTensors, x: Held) -> Result<Held> {
        let Shape { heads, kv_heads, context, .. } = self.shape;
        let normed = self.norm(&x, layer.before)?;
        let mut by_heads = Vec::new();
        for (weight, heads) in [(layer.query, heads), (layer.key, kv_heads), (layer.value, kv_heads)] {
            let of = self.product(&normed, weight, Activation::None)?;
            by_heads.push(self.turned(&of, heads, true)?);
        }
        let [q, k, v] = [0, 1, 2].map(|i: usize| by_heads[i].clone());
        let y = self.alloc(self.shape.width)?;
        let op = Attention::new([self.batch, heads, context, self.shape.size()], [kv_heads, context]).causal();
        self.add(&op, &[(&q, 0), (&k, 0), (&v, 0), (&y, 0)])?;
        let attended = self.turned(&y, heads, false)?;
        let added = self.product(&attended, layer.attended, Activation::None)?;
        let between = self.sum(&x, &added)?;
        let normed_between = self.norm(&between, layer.between)?;
        let wide = self.product(&normed_between, layer.up, Activation::Relu)?;
        let added = self.product(&wide, layer.down, Activation::None)?;
        let result = self.sum(&between, &added)?;
        let heads = [q, k, v];
        self.layers.push(Kept { x, normed, heads, attended, between, normed_between, wide });
        Ok(result)
    }

    /// Runs the pass.
    pub(crate) fn run(&self, ids: &[u32]) -> Result<()> {
        self.ids.slice(..)?.write(ids)?;
        self.network.run(&self.gpu)
    }
}

/// A step of training: the loss, its gradients, and Adam.
pub(crate) struct Trainer {
    forward: Forward,
    labels: Buffer<u32>,
    mean: Buffer<f32>,
    #[allow(dead_code, reason = "a test reads them")]
    pub(crate) gradients: Buffer<f32>,
    /// The backward pass, then the change of the parameters.
    backward: Network,
    change: Network,
}

impl Trainer {
    pub(crate) fn new(forward: Forward, rate: f32) -> Result<Self> {
        let gpu = forward.gpu.clone();
        let n = forward.tensors.len;
        let gradients = gpu.alloc_zeroed::<f32>(n)?;
        let labels = gpu.alloc_zeroed::<u32>(forward.rows())?;
        let mean = gpu.alloc::<f32>(1)?;
        let mut change = Network::default();
        let moments = [n, n, 2].map(|n| gpu.alloc_zeroed::<f32>(n).map(Held::from));
        let [first, second, fullness] = moments;
        let (first, second, fullness, slopes) = (first?, second?, fullness?, Held::from(gradients.clone()));
        let all = [&forward.parameters, &slopes, &first, &second, &fullness].map(|held| (held, 0));
        change.add::<f32>(&gpu, &Adam::new(n, rate), &all)?;
        let backward = Backward { of: &forward, network: Network::default(), gradients: slopes };
        let backward = backward.build(&labels, &mean)?;
        Ok(Self { forward, labels, mean, gradients, backward, change })
    }

    /// Computes the mean loss and its gradients.
    pub(crate) fn differentiate(&self, ids: &[u32], labels: &[u32]) -> Result<f32> {
        self.labels.slice(..)?.write(labels)?;
        self.forward.ids.slice(..)?.write(ids)?;
        let mut rec = self.forward.gpu.recorder();
        self.forward.network.record(&mut rec)?;
        self.backward.record(&mut rec)?;
        rec.submit()?;
        Ok(self.mean.read()?[0])
    }

    /// Takes a step, and returns the mean loss before it.
    pub(crate) fn step(&self, ids: &[u32], labels: &[u32]) -> Result<f32> {
        let loss = self.differentiate(ids, labels)?;
        self.change.run(&self.forward.gpu)?;
        Ok(loss)
    }
}

/// The backward pass under construction.
struct Backward<'a> {
    of: &'a Forward,
    network: Network,
    gradients: Held,
}

impl Backward<'_> {
    fn add(&mut self, op: &impl Op<f32>, operands: &[(&Held, usize)]) -> Result<()> {
        self.network.add::<f32>(&self.of.gpu, op, operands)
    }

    /// Adds the gradient of a weight, `x^T dy`, and that of its input, `dy weight^T`; added to `dx` if there is one.
    fn product(&mut self, x: &Held, weight: Tensor, dy: &Held, dx: Option<Held>) -> Result<Held> {
        let rows = self.of.rows();
        let gradients = self.gradients.clone();
        let gemm = Gemm::new(weight.rows, weight.columns, rows).trans_a();
        self.add(&gemm, &[(x, 0), (dy, 0), (&gradients, weight.at)])?;
        let gemm = Gemm::new(rows, weight.rows, weight.columns).trans_b();
        let gemm = if dx.is_some() { gemm.beta(1.0) } else { gemm };
        let dx = dx.map_or_else(|| self.of.alloc(weight.rows), Ok)?;
        self.add(&gemm, &[(dy, 0), (&self.of.parameters, weight.at), (&dx, 0)])?;
        Ok(dx)
    }

    /// Adds the gradients of a norm; that of its input is added to `dx`, if there is one.
    fn norm(&mut self, x: &Held, gamma: Tensor, dy: &Held, dx: Option<&Held>) -> Result<Held> {
        let (rows, width) = (self.of.rows(), gamma.columns);
        let (own, gradients) = (self.of.alloc(width)?, self.gradients.clone());
        let op = RmsNormBackward::new(rows, width).eps(EPS);
        let operands = [(x, 0), (&self.of.parameters, gamma.at), (dy, 0), (&own, 0), (&gradients, gamma.at)];
        self.add(&op, &operands)?;
        let Some(dx) = dx else { return Ok(own) };
        self.add(&Axpy::new(rows * width, 1.0), &[(&own, 0), (dx, 0)])?;
        Ok(dx.clone())
    }

    fn turned(&mut self, x: &Held, heads: usize, to_heads: bool) -> Result<Held> {
        let (rows, size) = (self.of.rows() * heads, self.of.shape.size());
        let turns = &self.of.turns[usize::from(heads != self.of.shape.heads)];
        let order = if to_heads { &turns.to_heads } else { &turns.to_tokens };
        let y = self.of.alloc(heads * size)?;
        self.add(&Gather::new([rows, size], rows), &[(x, 0), (order, 0), (&y, 0)])?;
        Ok(y)
    }

    /// Adds the gradients of a layer. `dx` is that of its output, and becomes that of its input.
    fn layer(&mut self, kept: &Kept, layer: LayerTensors, dx: &Held) -> Result<()> {
        let Shape { heads, kv_heads, context, .. } = self.of.shape;
        let rows = self.of.rows();
        let dwide = self.product(&kept.wide, layer.down, dx, None)?;
        let dup = self.of.alloc(layer.up.columns)?;
        let relu = ActivationBackward::new(Activation::Relu, rows * layer.up.columns);
        self.add(&relu, &[(&kept.wide, 0), (&dwide, 0), (&dup, 0)])?;
        let dnormed = self.product(&kept.normed_between, layer.up, &dup, None)?;
        self.norm(&kept.between, layer.between, &dnormed, Some(dx))?;

        let dattended = self.product(&kept.attended, layer.attended, dx, None)?;
        let dy = self.turned(&dattended, heads, true)?;
        let size = self.of.shape.size();
        let slopes = [heads, kv_heads, kv_heads].map(|heads| self.of.alloc(heads * size));
        let [dq, dk, dv] = slopes;
        let (dq, dk, dv) = (dq?, dk?, dv?);
        let [q, k, v] = &kept.heads;
        let op = AttentionBackward::new([self.of.batch, heads, context, size], [kv_heads, context]).causal();
        self.add(&op, &[q, k, v, &dy, &dq, &dk, &dv].map(|held| (held, 0)))?;
        let mut dnormed = None;
        for (weight, slope, heads) in
            [(layer.query, &dq, heads), (layer.key, &dk, kv_heads), (layer.value, &dv, kv_heads)]
        {
            let slope = self.turned(slope, heads, false)?;
            dnormed = Some(self.product(&kept.normed, weight, &slope, dnormed)?);
        }
        if let Some(dnormed) = dnormed {
            self.norm(&kept.x, layer.before, &dnormed, Some(dx))?;
        }
        Ok(())
    }

    fn build(mut self, labels: &Buffer<u32>, mean: &Buffer<f32>) -> Result<Network> {
        let of = self.of;
        let (rows, symbols, tensors) = (of.rows(), of.symbols, &of.tensors);
        let (losses, slopes) = (of.alloc(1)?, of.alloc(symbols)?);
        let [logits, mean] = [of.logits.clone().into(), mean.clone().into()];
        let all: [&Held; 5] = [&logits, &labels.clone().into(), &losses, &mean, &slopes];
        self.add(&CrossEntropy::new(rows, symbols).with_gradient(), &all.map(|held| (held, 0)))?;
        let dnormed = self.product(&of.normed, tensors.head, &slopes, None)?;
        let dx = self.norm(&of.last, tensors.norm, &dnormed, None)?;
        for (kept, layer) in of.layers.iter().zip(&tensors.layers).rev() {
            self.layer(kept, *layer, &dx)?;
        }
        // A row of the identity for each token: its transpose adds the gradients of equal tokens.
        let one = |i: usize| f32::from(u8::from(i / symbols == i % symbols));
        let identity: Vec<f32> = (0..symbols * symbols).map(one).collect();
        let (identity, one_hot) = (Held::upload(&of.gpu, DType::F32, &identity)?, of.alloc(symbols)?);
        let gather = Gather::new([symbols, symbols], rows);
        self.add(&gather, &[(&identity, 0), (&of.ids.clone().into(), 0), (&one_hot, 0)])?;
        let gradients = self.gradients.clone();
        let gemm = Gemm::new(symbols, of.shape.width, rows).trans_a();
        self.add(&gemm, &[(&one_hot, 0), (&dx, 0), (&gradients, tensors.embeddings.at)])?;
        let op = BiasBackward::new([of.batch, tensors.positions.len(), 1]);
        self.add(&op, &[(&dx, 0), (&gradients, tensors.positions.at)])?;
        Ok(self.network)
    }
}
