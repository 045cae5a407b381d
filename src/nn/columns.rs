//! Sums of the columns of a matrix: the gradients of biases, scales and shifts.

use crate::primitives::{Reduce, Sum};
use crate::program::prelude::*;

kernel_params! {
    struct ColumnsParams {
        rows: u32,
        n: u32,
        stride: u32,
        origin: u32,
        block: u32,
        first: u32,
        first_block: u32,
        factor: f32,
    }
}

/// The matrix, and how its columns are summed.
pub(super) struct Columns<'a> {
    pub(super) rows: u64,
    pub(super) n: u64,
    pub(super) gradients: Resource,
    /// Rows to multiply with, and the center and factor that normalise each.
    pub(super) normed: Option<(Resource, Binding)>,
    pub(super) factor: f32,
    pub(super) profile: &'a DeviceProfile,
}

const WORKGROUP: u64 = 256;

impl Columns<'_> {
    fn vectors(&self) -> bool {
        self.n.is_multiple_of(4)
    }

    fn items(&self) -> u64 {
        if self.vectors() { self.n / 4 } else { self.n }
    }

    /// Returns the items of a row that a workgroup sums.
    fn columns(&self) -> u64 {
        self.items().next_power_of_two().min(64)
    }

    /// Returns the rows of a block: few enough blocks for a short second pass, and enough to occupy the device.
    fn block(&self) -> u64 {
        let wanted = if self.profile.quirks.few_cores { 8 } else { 1024 };
        let tiles = self.items().div_ceil(self.columns());
        let blocks = (wanted / tiles).clamp(1, 128);
        let max = (WORKGROUP / self.columns()) * self.profile.loop_steps(1, 1 << 31);
        self.rows.div_ceil(blocks).max(4 * WORKGROUP / self.columns()).min(max)
    }

    fn kernel(&self, program: &mut Program, normed: bool, plain: bool) -> usize {
        let spec = Spec::new()
            .constant("WORKGROUP_SIZE", WORKGROUP as u32)
            .constant("COLUMNS", self.columns() as u32)
            .constant("PLANES", u32::from(normed) + u32::from(plain))
            .flag("VECTORS", self.vectors())
            .flag("NORMED", normed)
            .flag("PLAIN", plain);
        program.kernel(Kernel::library("nn/bias_backward", "bias_backward", spec))
    }

    fn grid(&self, blocks: u64) -> Grid {
        Grid::fold(blocks * self.items().div_ceil(self.columns()))
    }

    pub(super) fn sum(&self, program: &mut Program, plain: Option<Resource>, products: Option<Resource>) {
        if self.n == 0 {
            return;
        }
        let normed = self.normed.filter(|_| products.is_some());
        let outputs: Vec<Resource> = plain.into_iter().chain(products).collect();
        let planes = outputs.len() as u64;
        let block = self.block();
        let bytes = 4 * self.n;
        let chunks = self.profile.chunks(self.rows, bytes);
        let blocks: u64 = chunks.clone().map(|c| c.count.div_ceil(block)).sum();
        let of_output = |resource| Binding { resource, offset: 0, size: bytes };
        // A single block of a single sum is the result.
        let partials = if blocks == 1 && planes == 1 {
            of_output(outputs[0])
        } else {
            program.scratch(blocks.max(1) * planes * bytes)
        };
        let kernel = self.kernel(program, normed.is_some(), plain.is_some());
        let mut first_block = 0;
        for chunk in chunks {
            let params = ColumnsParams {
                rows: chunk.count as u32,
                n: self.n as u32,
                stride: self.n as u32,
                origin: (chunk.span(bytes).before / 4) as u32,
                block: block as u32,
                first: chunk.first as u32,
                first_block,
                factor: if blocks == 1 && planes == 1 { self.factor } else { 1.0 },
            };
            let mut bindings = vec![chunk.of(self.gradients, bytes), partials];
            if let Some((input, joined)) = normed {
                bindings.extend([chunk.of(input, bytes), joined]);
            }
            let blocks = chunk.count.div_ceil(block);
            program.dispatch(kernel, &params, bindings, self.grid(blocks));
            first_block += blocks as u32;
        }
        if blocks == 1 && planes == 1 {
            return;
        }
        let kernel = self.kernel(program, false, true);
        for (plane, output) in outputs.into_iter().enumerate() {
            let params = ColumnsParams {
                rows: blocks as u32,
                n: self.n as u32,
                stride: (planes * self.n) as u32,
                origin: plane as u32 * self.n as u32,
                block: blocks.max(1) as u32,
                first: 0,
                first_block: 0,
                factor: self.factor,
            };
            program.dispatch(kernel, &params, vec![partials, of_output(output)], self.grid(1));
        }
    }
}

pub(super) fn mean(
    program: &mut Program, values: Resource, n: usize, output: Resource, profile: &DeviceProfile,
) -> Result<()> {
    let total = program.scratch(DType::F32.size() as u64);
    let sum = Op::<f32>::lower(&Reduce::new(Sum, n), profile)?;
    program.append(sum, &[values, total.resource]);
    let factor = (1.0 / n as f64) as f32;
    let one = Columns { rows: 1, n: 1, gradients: total.resource, normed: None, factor, profile };
    one.sum(program, Some(output), None);
    Ok(())
}
