//! The ways to run a layer or its gradient with respect to x: one set of kernels for [`Conv2d`](super::Conv2d),
//! [`Conv2dBackwardData`](super::Conv2dBackwardData) and [`ConvTranspose2d`](super::ConvTranspose2d).

use super::coop::CoopLayer;
use super::depthwise::Depthwise;
use super::layer::{Correlation, ImageChunk, add_operands};
use super::predict;
use super::product::{LayerProduct, ProductBindings};
use super::tiled::Tiled;
use super::winograd;
use crate::dense::{Activation, Precision, dispatch_flop};
use crate::program::prelude::*;
use std::ops::Range;

pub(super) const VARIANTS: &[Variant] = &[
    Variant::portable("direct", "one thread for each output, by the definition"),
    Variant::portable("im2col", "windows unrolled to columns in scratch, then matrix products"),
    Variant::portable("implicit", "a matrix product that gathers windows while it stages them"),
    Variant::portable("tiled", "tiles of x with their halo in workgroup memory, rows of cells in registers"),
    Variant::portable("winograd", "3 x 3 with stride 1: tiles of 4 x 4 outputs from 36 matrix products"),
    Variant::portable("depthwise", "one channel a group: several outputs for each thread, sums in registers"),
    COOP,
];

/// The variant on cooperative matrices, of layers and their gradients.
pub(super) const COOP: Variant = Variant {
    name: "coop",
    about: "the product of `implicit` on cooperative matrices, for f16: windows gathered by pieces of 8 channels",
    requires: Requires { f16: true, cooperative: true, ..Requires::NOTHING },
    // Tint and WGSL proper have no cooperative matrices.
    translations: &[Translation::SpirV],
    any_order: false,
};

kernel_params! {
    pub(super) struct ConvSlabsParams { count: u32, slabs: u32, pixels: u32, channels: u32, y_at: u32 }
}

/// Maximum products of an output of `direct`, in loops that every driver runs to their end.
pub(super) const DIRECT: usize = 1 << 14;
const _: () = assert!(runs_everywhere(2 * DIRECT));

/// Approximate bytes of scratch of `im2col`: larger layers run in chunks.
fn scratch(profile: &DeviceProfile) -> u64 {
    let most = if profile.quirks.few_cores { 16 << 20 } else { 256 << 20 };
    profile.limits.max_storage_binding.min(most)
}

/// The most columns that `im2col` keeps, whole vec4s.
pub(super) fn columns_at_once(c: &Correlation, profile: &DeviceProfile) -> usize {
    (scratch(profile) / 4) as usize / (c.groups * c.terms()).max(1) / 4 * 4
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ConvJob<'a> {
    pub(super) c: Correlation,
    pub(super) activation: Activation,
    /// Slices of the sum of `implicit`, if they were asked for.
    pub(super) slices: Option<u32>,
    pub(super) x: Resource,
    pub(super) weights: Binding,
    pub(super) bias: Option<Binding>,
    pub(super) output: Resource,
    pub(super) profile: &'a DeviceProfile,
}

/// A layer as an op of its own.
pub(super) struct Whole<'a> {
    pub(super) c: Correlation,
    /// Names of x, the weights and the output.
    pub(super) names: [&'static str; 3],
    /// Elements of x, of the weights, of a bias if there is one, and of the output.
    pub(super) x: usize,
    pub(super) w: usize,
    pub(super) bias: Option<usize>,
    pub(super) output: usize,
    pub(super) flop: f64,
    pub(super) activation: Activation,
    /// The requested slices of the sum of `implicit`.
    pub(super) slices: Option<u32>,
    pub(super) asked: &'a str,
}

impl Whole<'_> {
    pub(super) fn program(self, profile: &DeviceProfile) -> Result<Program> {
        let Self { c, names, x, w, bias, output, flop, activation, slices, asked } = self;
        let (way, decision) = CorrelationWay::of(asked, &c, profile)?;
        let mut program = Program::new(c.op, decision);
        let mut operands = vec![(names[0], x, Access::Read), (names[1], w, Access::Read)];
        operands.extend(bias.map(|len| ("bias", len, Access::Read)));
        operands.push((names[2], output, Access::Write));
        add_operands(&mut program, c.dtype, &operands, profile)?;
        program.cost = Cost::of(flop, &program.operands);
        let job = ConvJob {
            c,
            activation,
            slices,
            x: Resource::Operand(0),
            weights: Binding::operand(1, &program.operands),
            bias: bias.map(|_| Binding::operand(2, &program.operands)),
            output: Resource::Operand(program.operands.len() - 1),
            profile,
        };
        job.lower(&mut program, &way)?;
        if let CorrelationWay::Direct = way {
            // A product, of two operations, loads its two factors.
            let size = program.operands[0].dtype.size() as f64;
            program.traffic = program.requested().map(|bytes| bytes + size * flop);
        }
        Ok(program)
    }
}

/// How a correlation runs, with the constants of its kernel.
enum CorrelationWay {
    Direct,
    Im2col,
    Implicit,
    Tiled(Tiled),
    Winograd,
    Depthwise(Depthwise),
    Coop,
}

impl CorrelationWay {
    /// Resolves the requested variant, or one that suits, and says why. Rejects what it or the device cannot run.
    fn of(asked: &str, c: &Correlation, profile: &DeviceProfile) -> Result<(Self, Decision)> {
        let (variant, decision) = choose(c.op, asked, VARIANTS, profile, || policy(c, profile))?;
        let wrong = wrong_variant(c, variant.name);
        let way = match variant.name {
            _ if wrong.is_some() => Err(wrong.unwrap_or_default()),
            "coop" => Ok(Self::Coop),
            "direct" if c.terms() > DIRECT => {
                Err(format!("takes windows of at most {DIRECT} cells with their channels, these have {}", c.terms()))
            }
            "direct" => Ok(Self::Direct),
            "im2col" => Ok(Self::Im2col),
            "tiled" => Tiled::check(c).map(|()| Self::Tiled(Tiled::new(c, profile))),
            "winograd" => winograd::check(c).map(|()| Self::Winograd),
            "depthwise" => Depthwise::check(c, profile).map(Self::Depthwise),
            _ => Ok(Self::Implicit),
        };
        Ok((way.map_err(|wrong| unfit(c, variant, &wrong))?, decision))
    }
}

/// Says why a variant does not take the elements or the precision of a layer.
pub(super) fn wrong_variant(c: &Correlation, variant: &str) -> Option<String> {
    let matrices = variant == "coop";
    let half = c.dtype == DType::F16;
    match (c.precision, variant) {
        _ if matches!(variant, "im2col" | "tiled" | "winograd") && !c.is_plain() => {
            Some("takes f32 in the order N, C, H, W".to_owned())
        }
        _ if variant == "depthwise" && c.last => Some("takes the order N, C, H, W".to_owned()),
        _ if matrices && !half => Some("takes f16".to_owned()),
        (Precision::Exact, "coop") => Some("does not run by fused multiply-adds (Precision::Exact)".to_owned()),
        (Precision::Tensor, _) if !matrices => Some("does not run on tensor cores (Precision::Tensor)".to_owned()),
        _ => None,
    }
}

/// The error for a variant that does not take a layer, and why.
pub(super) fn unfit(c: &Correlation, variant: &Variant, wrong: &str) -> crate::Error {
    err!(Unsupported, "{}: the variant `{}` {wrong}; take `implicit` or `auto`", c.op, variant.name)
}

fn policy(c: &Correlation, profile: &DeviceProfile) -> (&'static str, String) {
    let is_long = c.terms() as u64 > 4 * profile.loop_steps(1, 1 << 32);
    if c.precision == Precision::Tensor {
        ("coop", "Precision::Tensor runs on cooperative matrices".to_owned())
    } else if !c.last && Depthwise::fits(c) {
        ("depthwise", "one channel a group: bound by memory".to_owned())
    } else if c.is_plain() && Tiled::check(c).is_ok() && is_long {
        let why = "products for an output, in slices of channels: the driver ends long loops";
        ("tiled", format!("{} {why}", c.terms()))
    } else if profile.quirks.serial_workgroups {
        serial_policy(c, profile)
    } else {
        predict::fastest(c, profile)
    }
}

/// For drivers that run workgroups one after the other. us of `tiled`, `winograd`, `implicit`, 3 x 3 on 14 x 14 (Mesa
/// 22.3): 16 to 16 channels 183, 299, 321, 64 to 64 2248, 1066, 4293. 1 x 1 on 28 x 28, 64 to 64: `im2col` 9142, others
/// 15,980.
fn serial_policy(c: &Correlation, profile: &DeviceProfile) -> (&'static str, String) {
    let products = (c.images * c.pixels()).saturating_mul(c.to * c.terms());
    // Products from which a copy of all windows pays; never, if they overlap in a tile.
    let many = match (c.kernel, Tiled::check(c)) {
        ([1, 1], _) => 1 << 21,
        (_, Err(_)) => 1 << 23,
        _ => usize::MAX,
    };
    if c.is_plain() && winograd::fits(c) && c.from.min(c.to) >= 16 && products >= 1 << 20 {
        ("winograd", format!("windows of 3 x 3 over {} channels: a quarter of the products", c.from))
    } else if c.is_plain() && products >= many && columns_at_once(c, profile) > 0 {
        ("im2col", "many products pay for a copy of all windows".to_owned())
    } else if c.is_plain() && Tiled::check(c).is_ok() {
        ("tiled", "each cell serves several outputs and filters".to_owned())
    } else if c.to < 4 && c.terms() <= DIRECT {
        ("direct", format!("{} filters a group are too few for a tile", c.to))
    } else if c.terms() < 16 || products < 1 << 13 {
        ("direct", "too few products for tiles".to_owned())
    } else {
        ("implicit", "each loaded window serves several filters".to_owned())
    }
}

impl ConvJob<'_> {
    fn lower(&self, program: &mut Program, way: &CorrelationWay) -> Result<()> {
        let chunks = self.c.chunks(self.x, self.output, self.profile)?;
        match way {
            CorrelationWay::Direct => self.direct(program, &chunks),
            CorrelationWay::Im2col => self.im2col(program, &chunks),
            CorrelationWay::Implicit => self.implicit(program, &chunks),
            CorrelationWay::Tiled(tiled) => tiled.lower(self, program, &chunks),
            CorrelationWay::Winograd => winograd::lower(self, program, &chunks),
            CorrelationWay::Coop => CoopLayer::lower(self, program),
            CorrelationWay::Depthwise(depthwise) => {
                depthwise.lower(self, program, &chunks);
                Ok(())
            }
        }
    }

    /// The epilogue of a kernel: bias and output from binding `next` on.
    pub(super) fn end(&self, next: u32, output: &'static str) -> Spec {
        let bias = self.bias.is_some();
        let spec = Spec::new()
            .alias("R", self.c.wgsl())
            .flag("F16", self.c.dtype == DType::F16)
            .flag("BIAS", bias)
            .constant("BIAS_BINDING", next)
            .slot("activation", Fragment::Library(self.activation.fragment()));
        spec.constant(output, next + u32::from(bias))
    }

    /// Adds the weights in their memory order to `spec`.
    pub(super) fn weigh(&self, spec: Spec) -> Spec {
        let name = if self.c.turned { "conv/conv_backward_data_weight" } else { "conv/conv_weight" };
        self.c.elements(spec).slot("weight", Fragment::Library(name))
    }

    pub(super) fn spread(&self, spec: Spec) -> Spec {
        spec.constant("UP_H", self.c.up[0] as u32).constant("UP_W", self.c.up[1] as u32)
    }

    /// Binds the bias, if there is one, and the operands after it.
    pub(super) fn ends(&self, output: Binding) -> Vec<Binding> {
        self.bias.into_iter().chain([output]).collect()
    }

    fn direct(&self, program: &mut Program, chunks: &[ImageChunk]) -> Result<()> {
        let spec = self.spread(self.weigh(self.end(3, "OUTPUT_BINDING")));
        let kernel = program.kernel(Kernel::of_file("conv/conv_direct", spec));
        // Threads of a bounded time.
        let each = (dispatch_flop(self.profile.class) / 8 / self.c.terms() as u64).max(256) / 256 * 256;
        for chunk in chunks {
            let outputs = (chunk.images * self.c.image()[1]) as u64;
            for Range { start, end } in program.chunks(outputs, each)? {
                let mut params = self.c.params(chunk, end as usize);
                params.first = start as u32;
                let bindings = [vec![chunk.x, self.weights], self.ends(chunk.y)].concat();
                program.dispatch(kernel, &params, bindings, Grid::fold((end - start).div_ceil(256)));
            }
        }
        Ok(())
    }

    /// Returns the weights in the order of a layer, turned first if needed.
    fn straight(&self, program: &mut Program) -> Binding {
        if !self.c.turned && !self.c.last {
            return self.weights;
        }
        let count = self.c.groups * self.c.to * self.c.terms();
        let turned = program.scratch((self.c.size_of() * count as u64).next_multiple_of(4));
        let spec = self.weigh(Spec::new().constant("WEIGHTS_BINDING", 1u32));
        let kernel = Kernel::of_file("conv/conv_transpose_turn", spec);
        let kernel = program.kernel(kernel);
        let none = ImageChunk { first: 0, images: 0, x: turned, y: turned, x_at: 0, y_at: 0 };
        let params = self.c.params(&none, count);
        let grid = Grid::fold((count as u64).div_ceil(256));
        program.dispatch(kernel, &params, vec![self.weights, turned], grid);
        turned
    }

    fn implicit(&self, program: &mut Program, chunks: &[ImageChunk]) -> Result<()> {
        let weights = self.straight(program);
        let product = |chunk: &ImageChunk| LayerProduct::windows(&self.c, chunk.images, self.slices, self.profile);
        let outputs = |chunk: &ImageChunk| (chunk.images * self.c.image()[1]) as u64;
        let products: Vec<_> = chunks.iter().map(product).collect();
        program.decision.because(format_args!("{}", products[0].text()));
        let bytes = |(chunk, product): (&ImageChunk, &LayerProduct)| match product.slices() as u64 {
            1 => 0,
            slices => 4 * slices * outputs(chunk),
        };
        let most = chunks.iter().zip(&products).map(bytes).max().unwrap_or(0);
        let slices = products[0].slices();
        let what = format_args!("the slabs of {slices} slices");
        self.profile.check_scratch(self.c.op, what, most, "take fewer slices or images")?;
        let slabs = (most > 0).then(|| program.scratch(most));
        for (chunk, product) in chunks.iter().zip(&products) {
            let size = bytes((chunk, product));
            let Some(slabs) = slabs.filter(|_| size > 0).map(|slabs| Binding { size, ..slabs }) else {
                let bound = ProductBindings { a: weights, b: chunk.x, c: self.ends(chunk.y) };
                let spec = self.end(3, "C_BINDING");
                product.layer(program, (&self.c, chunk, 0), spec, bound, self.profile)?;
                continue;
            };
            let bound = ProductBindings { a: weights, b: chunk.x, c: vec![slabs] };
            let apart = ImageChunk { y_at: 0, ..*chunk };
            product.layer(program, (&self.c, &apart, 0), Spec::new(), bound, self.profile)?;
            let end = self.end(2, "OUTPUT_BINDING").flag("LAST", self.c.last);
            let kernel = program.kernel(Kernel::of_file("conv/conv_slabs", end));
            let params = ConvSlabsParams {
                count: outputs(chunk) as u32,
                slabs: product.slices() as u32,
                pixels: self.c.pixels() as u32,
                channels: (self.c.groups * self.c.to) as u32,
                y_at: chunk.y_at,
            };
            let bindings = [vec![slabs], self.ends(chunk.y)].concat();
            program.dispatch(kernel, &params, bindings, Grid::fold(outputs(chunk).div_ceil(256)));
        }
        Ok(())
    }

    fn im2col(&self, program: &mut Program, chunks: &[ImageChunk]) -> Result<()> {
        let c = &self.c;
        let weights = self.straight(program);
        let rows = c.groups * c.terms();
        let most = columns_at_once(c, self.profile);
        if most == 0 {
            return Err(err!(
                TooLarge,
                "{}: columns of {rows} elements are above the scratch of {} bytes; take `implicit` or fewer channels",
                c.op,
                scratch(self.profile)
            ));
        }
        let outputs = chunks[0].images * c.pixels();
        let width = outputs.div_ceil(outputs.div_ceil(most)).next_multiple_of(4);
        let columns = program.scratch(4 * (width * rows) as u64);
        let product = LayerProduct::columns(c, width, self.profile);
        program.decision.because(format_args!(
            "{width} columns of {} at a time, {} bytes of scratch; {}",
            c.images * c.pixels(),
            columns.size,
            product.text()
        ));
        let unroll = Kernel::of_file("conv/conv_im2col", self.spread(Spec::new()));
        let unroll = program.kernel(unroll);
        for chunk in chunks {
            for Range { start, .. } in program.chunks((chunk.images * c.pixels()) as u64, width as u64)? {
                let mut params = c.params(chunk, rows);
                (params.first, params.columns) = (start as u32, width as u32);
                let grid = Grid::fold(((width * rows) as u64).div_ceil(256));
                program.dispatch(unroll, &params, vec![chunk.x, columns], grid);
                let bound = ProductBindings { a: weights, b: columns, c: self.ends(chunk.y) };
                let spec = self.end(3, "C_BINDING");
                product.layer(program, (c, chunk, start as usize), spec, bound, self.profile)?;
            }
        }
        Ok(())
    }
}
