use super::{Optimizer, Sequential, SequentialLayer, images};
use crate::nn::PoolKind;
use crate::program::prelude::*;

/// A tensor among the parameters of a [`Sequential`], or in the state of its optimizer.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// The layer and the part: `0.weight`.
    pub name: String,
    /// The extents.
    pub shape: Vec<usize>,
    /// The offset in the buffer, in elements.
    pub offset: usize,
    initial: InitialValue,
}

/// What a tensor holds before training.
#[derive(Debug, Clone, PartialEq)]
enum InitialValue {
    /// Numbers within `1 / sqrt(fan in)`, the number of products in each sum.
    Uniform {
        fan_in: usize,
    },
    All(f32),
    Given(Vec<f32>),
}

impl Parameter {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Tells whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the first offset after it.
    pub(super) fn end(&self) -> usize {
        self.offset + self.len()
    }
}

/// Alignment of tensors in elements: bindings begin at multiples of 256 bytes.
const STEP: usize = 64;

/// The parts of a layer that optimizers leave alone.
const RUNNING: [&str; 2] = ["running_mean", "running_var"];

impl SequentialLayer {
    /// Returns the tensors of the layer for samples of this shape: part, extents, and first values.
    fn tensors(&self, from: [usize; 3]) -> Result<Vec<(&'static str, Vec<usize>, InitialValue)>> {
        let sums = |weights: Vec<usize>| {
            let fan_in = elements("sequential", "weights", &weights[1..])?;
            let bias = vec![weights[0]];
            let of = |part, shape| (part, shape, InitialValue::Uniform { fan_in });
            Ok(vec![of("weight", weights), of("bias", bias)])
        };
        let channels = |part, value| (part, vec![from[0]], InitialValue::All(value));
        match self {
            Self::Conv(conv) => sums(conv.with_bias_at(images(1, from)).weights_shape().to_vec()),
            Self::Linear { outputs } => sums(vec![*outputs, from.iter().product()]),
            Self::Pool(pool) => {
                let mut tensors = Vec::new();
                if let (PoolKind::Weighted(weights), true) = (&pool.kind, pool.weights) {
                    let given = InitialValue::Given(weights.clone());
                    tensors.push(("weight", pool.windows.kernel.to_vec(), given));
                }
                if pool.bias {
                    tensors.push(channels("bias", 0.0));
                }
                Ok(tensors)
            }
            Self::BatchNorm(_) => Ok(vec![
                channels("weight", 1.0),
                channels("bias", 0.0),
                channels(RUNNING[0], 0.0),
                channels(RUNNING[1], 1.0),
            ]),
            Self::Activation(_) | Self::Sign | Self::Flatten | Self::Softmax => Ok(Vec::new()),
        }
    }
}

impl Sequential {
    /// Lists the tensors in the order of the layers: first those that training optimizes, then running statistics.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn parameters(&self) -> Result<Vec<Parameter>> {
        let mut all = self.trained()?;
        all.extend(self.tensors(true, all.last().map_or(0, Parameter::end))?);
        Ok(all)
    }

    /// Lists the tensors that training optimizes.
    pub(super) fn trained(&self) -> Result<Vec<Parameter>> {
        self.tensors(false, 0)
    }

    /// Lists the running statistics, or the other tensors, placed from `begin` on.
    fn tensors(&self, running: bool, begin: usize) -> Result<Vec<Parameter>> {
        let shapes = self.shapes()?;
        let (mut tensors, mut end): (Vec<Parameter>, _) = (Vec::new(), begin);
        for (index, layer) in self.layers.iter().enumerate() {
            let from = if index == 0 { self.input } else { shapes[index - 1] };
            for (part, shape, initial) in layer.tensors(from)? {
                if RUNNING.contains(&part) != running {
                    continue;
                }
                let offset = end.next_multiple_of(STEP);
                end = offset.saturating_add(elements("sequential", part, &shape)?);
                index_u32("sequential", "the number of parameters", end)?;
                tensors.push(Parameter { name: format!("{index}.{part}"), shape, offset, initial });
            }
        }
        Ok(tensors)
    }

    /// Returns the number of elements of the buffer of all parameters.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn parameter_len(&self) -> Result<usize> {
        Ok(self.parameters()?.last().map_or(0, Parameter::end))
    }

    /// Returns the number of elements that training optimizes, the first of the buffer of all parameters.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn trained_len(&self) -> Result<usize> {
        Ok(self.trained()?.last().map_or(0, Parameter::end))
    }

    /// Returns the initial parameters: random weights and biases, uniform within `1 / sqrt(fan in)` as in PyTorch;
    /// scales and variances of 1, shifts and means of 0; the given weights of pools. A seed always gives the same.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn initial(&self, seed: u64) -> Result<Vec<f32>> {
        let mut values = filled("sequential", self.parameter_len()?, 0.0)?;
        // splitmix64 (Steele, Lea and Flood, 2014).
        let mut state = seed;
        let mut unit = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 11) as f64 * 2f64.powi(-52) - 1.0
        };
        for parameter in self.parameters()? {
            let values = &mut values[parameter.offset..parameter.end()];
            match &parameter.initial {
                InitialValue::Uniform { fan_in } => {
                    let bound = 1.0 / ((*fan_in).max(1) as f64).sqrt();
                    values.iter_mut().for_each(|value| *value = (bound * unit()) as f32);
                }
                InitialValue::All(value) => values.fill(*value),
                // A wrong number of weights is an error of the pool's plan.
                InitialValue::Given(given) => values.iter_mut().zip(given).for_each(|(v, g)| *v = *g),
            }
        }
        Ok(values)
    }

    /// Returns the number of elements of an optimizer's state.
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn state_len(&self, optimizer: &Optimizer) -> Result<usize> {
        let [.., end] = self.state_places(optimizer)?;
        Ok(end)
    }

    /// Returns the offset of the second moments and of the fullness, and the end of the state.
    pub(super) fn state_places(&self, optimizer: &Optimizer) -> Result<[usize; 3]> {
        let n = self.trained_len()?;
        let second = n.next_multiple_of(STEP);
        Ok(match optimizer {
            Optimizer::Sgd(_) => [n, n, n],
            Optimizer::Adam(_) => [second, 2 * second, 2 * second + 2],
        })
    }

    /// Lists the tensors of an optimizer's state: `velocity.0.weight` for gradient descent; `first.0.weight`,
    /// `second.0.weight` and `fullness` for Adam. Saved with the parameters, they let training go on with the same
    /// bits.
    ///
    /// ```
    /// use tilework::nn::{Adam, Sequential};
    ///
    /// let net = Sequential::new([2, 1, 1]).linear(3);
    /// let state = net.state(&Adam::for_network(0.01).into())?;
    /// let names: Vec<_> = state.iter().map(|tensor| tensor.name.as_str()).collect();
    /// assert_eq!(names, ["first.0.weight", "first.0.bias", "second.0.weight", "second.0.bias", "fullness"]);
    /// # Ok::<(), tilework::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`forward`](Self::forward).
    pub fn state(&self, optimizer: &Optimizer) -> Result<Vec<Parameter>> {
        let (trained, [second, fullness, _]) = (self.trained()?, self.state_places(optimizer)?);
        let part = |name: &str, begin: usize| {
            let of = |p: &Parameter| Parameter {
                name: format!("{name}.{}", p.name),
                offset: begin + p.offset,
                initial: InitialValue::All(0.0),
                ..p.clone()
            };
            trained.iter().map(of).collect::<Vec<_>>()
        };
        Ok(match optimizer {
            Optimizer::Sgd(_) => part("velocity", 0),
            Optimizer::Adam(_) => {
                let last = Parameter {
                    name: "fullness".into(),
                    shape: vec![2],
                    offset: fullness,
                    initial: InitialValue::All(0.0),
                };
                [part("first", 0), part("second", second), vec![last]].concat()
            }
        })
    }
}
