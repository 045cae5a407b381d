//! The common part of the convolution layers: their shapes, the correlation that each becomes, and the chunks of a
//! batch that fit one binding.

use crate::dense::Precision;
use crate::program::prelude::*;

/// The largest extent: a kernel adds a few of them.
const MAX_EXTENT: usize = 1 << 28;

#[derive(Debug, Clone, Copy)]
pub(crate) struct WindowAxis {
    pub(crate) name: &'static str,
    pub(crate) size: usize,
    /// Cells of a window, the distance from one window to the next, and from cell to cell.
    pub(crate) cells: usize,
    pub(crate) step: usize,
    pub(crate) gap: usize,
    /// Padding before and after.
    pub(crate) pads: [usize; 2],
}

impl WindowAxis {
    /// The extent from the first cell of a window to its last, inclusive.
    pub(crate) fn span(self) -> usize {
        self.cells.saturating_sub(1).saturating_mul(self.gap).saturating_add(1)
    }

    pub(crate) fn windows(self, op: &str) -> Result<usize> {
        let Self { name, size, cells, step, gap, pads: [before, after] } = self;
        if cells == 0 || step == 0 || gap == 0 {
            return Err(err!(
                Shape,
                "{op}: along {name} the window has {cells} cells, stride {step} and dilation {gap}; each must be at \
                 least 1"
            ));
        }
        if [size, cells, step, gap, before, after].into_iter().any(|e| e > MAX_EXTENT) || self.span() > MAX_EXTENT {
            return Err(err!(TooLarge, "{op}: an extent along {name} is above {MAX_EXTENT}; take parts of the image"));
        }
        let (span, room) = (self.span(), size + before + after);
        if span > room {
            return Err(err!(
                Shape,
                "{op}: a window of {span} {name} is larger than the image of {size} with its padding of {before} and \
                 {after}"
            ));
        }
        Ok((room - span) / step + 1)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layer {
    pub(crate) op: &'static str,
    /// N, C, H, W of x.
    pub(crate) shape: [usize; 4],
    pub(crate) filters: usize,
    pub(crate) kernel: [usize; 2],
    pub(crate) stride: [usize; 2],
    /// Top, left, bottom, right.
    pub(crate) pads: [usize; 4],
    pub(crate) dilation: [usize; 2],
    pub(crate) groups: usize,
    /// Channels lie next to each other, in the weights too.
    pub(crate) last: bool,
    pub(crate) precision: Precision,
}

impl Layer {
    pub(crate) fn new(op: &'static str, shape: [usize; 4], filters: usize, kernel: [usize; 2]) -> Self {
        Self {
            op,
            shape,
            filters,
            kernel,
            stride: [1; 2],
            pads: [0; 4],
            dilation: [1; 2],
            groups: 1,
            last: false,
            precision: Precision::Strict,
        }
    }

    pub(crate) fn axis(&self, axis: usize) -> WindowAxis {
        WindowAxis {
            name: ["rows", "columns"][axis],
            size: self.shape[2 + axis],
            cells: self.kernel[axis],
            step: self.stride[axis],
            gap: self.dilation[axis],
            pads: [self.pads[axis], self.pads[axis + 2]],
        }
    }

    /// Returns N, M, P, Q after all checks of the shape.
    pub(crate) fn output_shape(&self) -> Result<[usize; 4]> {
        let Self { op, shape: [n, c, h, w], filters, groups, .. } = *self;
        if [n, c, h, w, filters].contains(&0) {
            return Err(err!(
                Shape,
                "{op}: {n} images of {c} channels of {h} x {w} in and {filters} channels out; none may be 0"
            ));
        }
        if groups == 0 || c % groups != 0 || filters % groups != 0 {
            return Err(err!(
                Shape,
                "{op}: {groups} groups do not divide {c} channels in and {filters} out; take a divisor of both"
            ));
        }
        Ok([n, filters, self.axis(0).windows(op)?, self.axis(1).windows(op)?])
    }

    /// Returns M, C / groups, R, S.
    pub(crate) fn weights_shape(&self) -> [usize; 4] {
        let [r, s] = self.kernel;
        [self.filters, self.shape[1] / self.groups.max(1), r, s]
    }

    /// Counts the elements of x, of the weights, and of the output.
    pub(crate) fn lengths(&self) -> Result<[usize; 3]> {
        Ok([
            elements(self.op, "x", &self.shape)?,
            elements(self.op, "weights", &self.weights_shape())?,
            elements(self.op, "output", &self.output_shape()?)?,
        ])
    }

    /// Counts multiply-adds, each as two.
    pub(crate) fn flop(&self) -> Result<f64> {
        let [_, per_output @ ..] = self.weights_shape();
        let outputs = self.lengths()?[2] as f64;
        Ok(2.0 * outputs * per_output.iter().map(|x| *x as f64).product::<f64>())
    }

    pub(crate) fn forward(&self) -> Result<Correlation> {
        let [images, _, p, q] = self.output_shape()?;
        let [top, left, ..] = self.pads;
        Ok(Correlation {
            op: self.op,
            images,
            groups: self.groups,
            from: self.shape[1] / self.groups,
            to: self.filters / self.groups,
            size: [self.shape[2], self.shape[3]],
            out: [p, q],
            kernel: self.kernel,
            stride: self.stride,
            up: [1; 2],
            pad: [top as isize, left as isize],
            dilation: self.dilation,
            turned: false,
            last: self.last,
            precision: self.precision,
            dtype: DType::F32,
        })
    }

    /// The correlation from gradients of the output to those of x: the output spread `stride` apart, with the
    /// filter turned by half a circle.
    pub(crate) fn backward(&self) -> Result<Correlation> {
        let forward = self.forward()?;
        let pad = |axis: usize| self.axis(axis).span() as isize - 1 - forward.pad[axis];
        Ok(Correlation {
            from: forward.to,
            to: forward.from,
            size: forward.out,
            out: forward.size,
            stride: [1; 2],
            up: self.stride,
            pad: [pad(0), pad(1)],
            turned: true,
            ..forward
        })
    }
}

/// The options of every layer, by name.
pub(super) const STRIDE: Setting = Setting::pair("stride", "1");
pub(super) const PAD: Setting = Setting::pair("pad", "0");
pub(super) const PAD_EACH: Setting = Setting::text("pad-each", SIDES, "");
pub(super) const DILATION: Setting = Setting::pair("dilation", "1");
pub(super) const GROUPS: Setting = Setting::number("groups", "1");
pub(super) const CHANNELS_LAST: Setting = Setting::flag("channels-last");
const SIDES: &str = "TOP,LEFT,BOTTOM,RIGHT";

impl Layer {
    /// Reads the layer of this shape with its options.
    pub(super) fn asked(asked: &Asked<'_>, shape: [usize; 4], filters: usize, kernel: [usize; 2]) -> Result<Self> {
        let settings = asked.settings();
        Ok(Self {
            stride: settings.pair("stride")?,
            pads: pads(asked)?,
            dilation: settings.pair("dilation")?,
            groups: settings.number("groups")?,
            last: settings.has(CHANNELS_LAST.name),
            precision: Precision::asked(settings)?,
            ..Self::new(asked.name(), shape, filters, kernel)
        })
    }
}

fn pads(asked: &Asked<'_>) -> Result<[usize; 4]> {
    let settings = asked.settings();
    if !settings.has("pad-each") {
        let [h, w] = settings.pair("pad")?;
        return Ok([h, w, h, w]);
    }
    if settings.has("pad") {
        let op = asked.name();
        return Err(err!(InvalidArgument, "{op}: both --pad and --pad-each are given; give one of them"));
    }
    settings.numbers("pad-each", SIDES)
}

/// The extents of an array of N, C, H, W as they lie in memory: with `channels-last` C comes last.
pub(super) fn in_memory(asked: &Asked<'_>, [n, c, h, w]: [usize; 4]) -> [usize; 4] {
    if asked.settings().has(CHANNELS_LAST.name) { [n, h, w, c] } else { [n, c, h, w] }
}

/// N, C, H, W of an array in memory.
pub(super) fn by_channels(asked: &Asked<'_>, extents: [usize; 4]) -> [usize; 4] {
    let [n, h, w, c] = extents;
    if asked.settings().has(CHANNELS_LAST.name) { [n, c, h, w] } else { extents }
}

/// Reads the operands of a layer of `filters` filters, and says if a bias is among them.
pub(super) fn operands(
    asked: &mut Asked<'_>, inputs: [HostArray; 2], filters: usize, output: [usize; 4],
) -> Result<(Vec<Role>, bool)> {
    let dtype = inputs[0].dtype();
    let mut operands = inputs.map(Role::Given).to_vec();
    let biased = asked.has_more();
    if biased {
        operands.push(Role::Given(asked.of("bias", &[filters], dtype)?));
    }
    operands.push(Role::Result(in_memory(asked, output).to_vec()));
    Ok((operands, biased))
}

/// A correlation, which computes a layer and the gradient with respect to its input:
/// `y[o, p, q] = sum of w[o, i, a, b] x[i, (p stride - pad + a dilation) / up, ...]` over whole quotients.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Correlation {
    pub(crate) op: &'static str,
    pub(crate) images: usize,
    pub(crate) groups: usize,
    /// Input and output channels of a group.
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Input and output extents.
    pub(crate) size: [usize; 2],
    pub(crate) out: [usize; 2],
    pub(crate) kernel: [usize; 2],
    pub(crate) stride: [usize; 2],
    /// Elements of x are spread this far apart, with zeros between them.
    pub(crate) up: [usize; 2],
    pub(crate) pad: [isize; 2],
    pub(crate) dilation: [usize; 2],
    /// The weights are those of the layer whose gradient this is: turned, input and output swapped.
    pub(crate) turned: bool,
    /// Channels lie next to each other, in the weights too.
    pub(crate) last: bool,
    pub(crate) precision: Precision,
    /// The type of the elements; sums are of f32.
    pub(crate) dtype: DType,
}

kernel_params! {
    /// Parameters of the kernels that walk over images.
    pub(crate) struct ConvParams {
        count: u32, first: u32, images: u32, groups: u32, channels_in: u32, channels_out: u32, h: u32, w: u32,
        p: u32, q: u32, r: u32, s: u32, stride_h: u32, stride_w: u32, bound_h: u32, bound_w: u32, pad_h: u32,
        pad_w: u32, dilation_h: u32, dilation_w: u32, x_at: u32, y_at: u32, columns: u32, all_images: u32,
        first_channel: u32, end_channel: u32,
    }
}

/// Some images of a batch, with the bindings that hold them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImageChunk {
    pub(crate) first: usize,
    pub(crate) images: usize,
    pub(crate) x: Binding,
    pub(crate) y: Binding,
    /// Elements of the bindings before the first image.
    pub(crate) x_at: u32,
    pub(crate) y_at: u32,
}

impl Correlation {
    /// The same for elements of this type.
    pub(crate) fn of(self, dtype: DType, profile: &DeviceProfile) -> Result<Self> {
        let requires = Requires { f16: dtype == DType::F16, ..Requires::NOTHING };
        if let Some(missing) = requires.missing(profile) {
            let lacks = profile.lacks();
            return Err(err!(Unsupported, "{}: elements of f16 need {missing}, {lacks}; convert them to f32", self.op));
        }
        match self.precision {
            Precision::Strict | Precision::Exact => {}
            Precision::Tensor if dtype == DType::F16 => {}
            precision => {
                return Err(err!(
                    Unsupported,
                    "{}: {} needs tensor cores, which layers of f32 use on CUDA only; take Precision::Strict, or f16",
                    self.op,
                    precision.name()
                ));
            }
        }
        Ok(Self { dtype, ..self })
    }

    /// Bytes of an element.
    pub(crate) fn size_of(&self) -> u64 {
        self.dtype.size() as u64
    }

    /// Says if every variant takes the elements and their order.
    pub(crate) fn is_plain(&self) -> bool {
        self.dtype == DType::F32 && !self.last
    }

    pub(crate) fn channels(&self) -> [usize; 2] {
        [self.groups * self.from, self.groups * self.to]
    }

    /// The type and the order of the elements, for kernels that read x or weights.
    pub(crate) fn elements(&self, spec: Spec) -> Spec {
        spec.alias("T", self.wgsl()).flag("LAST", self.last).flag("F16", self.dtype == DType::F16)
    }

    /// The type of the elements in WGSL.
    pub(crate) fn wgsl(&self) -> &'static str {
        if self.dtype == DType::F16 { "f16" } else { "f32" }
    }

    /// Counts the products of an output.
    pub(crate) fn terms(&self) -> usize {
        self.from * self.kernel[0] * self.kernel[1]
    }

    pub(crate) fn pixels(&self) -> usize {
        self.out[0] * self.out[1]
    }

    /// Elements of an image, input and output.
    pub(crate) fn image(&self) -> [usize; 2] {
        let [h, w] = self.size;
        [self.groups * self.from * h * w, self.groups * self.to * self.pixels()]
    }

    /// The end of the spread x: the position after the last that is not 0.
    pub(crate) fn bounds(&self) -> [u32; 2] {
        [0, 1].map(|axis| ((self.size[axis] - 1) * self.up[axis] + 1) as u32)
    }

    /// Cuts the batch into as few chunks as bindings allow.
    pub(crate) fn chunks(&self, x: Resource, y: Resource, profile: &DeviceProfile) -> Result<Vec<ImageChunk>> {
        let bytes = self.image().map(|elements| self.size_of() * elements as u64);
        image_chunks(self.op, self.images, (bytes, self.size_of(), 0), [x, y], profile)
    }

    /// Parameters for `count` outputs of any kernel.
    pub(crate) fn params(&self, chunk: &ImageChunk, count: usize) -> ConvParams {
        let [h, w] = self.size.map(|x| x as u32);
        let [p, q] = self.out.map(|x| x as u32);
        let [r, s] = self.kernel.map(|x| x as u32);
        let [stride_h, stride_w] = self.stride.map(|x| x as u32);
        let [bound_h, bound_w] = self.bounds();
        // Negative values wrap, and sums come out right.
        let [pad_h, pad_w] = self.pad.map(|x| x as u32);
        let [dilation_h, dilation_w] = self.dilation.map(|x| x as u32);
        ConvParams {
            count: count as u32,
            first: 0,
            images: chunk.images as u32,
            groups: self.groups as u32,
            channels_in: self.from as u32,
            channels_out: self.to as u32,
            h,
            w,
            p,
            q,
            r,
            s,
            stride_h,
            stride_w,
            bound_h,
            bound_w,
            pad_h,
            pad_w,
            dilation_h,
            dilation_w,
            x_at: chunk.x_at,
            y_at: chunk.y_at,
            columns: 0,
            all_images: chunk.images as u32,
            first_channel: 0,
            end_channel: self.from as u32,
        }
    }
}

/// Cuts a batch into chunks that each fit one binding; the operands have these bytes for each image, in elements of
/// `size` bytes. Scratch of `scratch` bytes for each image must fit a binding too.
pub(crate) fn image_chunks(
    op: &str, images: usize, (bytes, size, scratch): ([u64; 2], u64, u64), operands: [Resource; 2],
    profile: &DeviceProfile,
) -> Result<Vec<ImageChunk>> {
    let largest = bytes[0].max(bytes[1]).max(scratch);
    if !profile.binds_all(images as u64, largest) {
        profile.check_row(op, format_args!("an image"), largest, "split the image")?;
    }
    let chunks = profile.chunks(images as u64, largest).map(|chunk| {
        let [x, y] = bytes.map(|bytes| chunk.span(bytes));
        let [x_at, y_at] = [x, y].map(|span| (span.before / size) as u32);
        let (x, y) = (x.of(operands[0]), y.of(operands[1]));
        ImageChunk { first: chunk.first as usize, images: chunk.count as usize, x, y, x_at, y_at }
    });
    Ok(chunks.collect())
}

/// Adds operands of this type, each no larger than a buffer, and no larger than a binding unless it holds the batch.
pub(crate) fn add_operands(
    program: &mut Program, dtype: DType, operands: &[(&'static str, usize, Access)], profile: &DeviceProfile,
) -> Result<()> {
    for &(name, len, access) in operands {
        let operand = [Operand { name, dtype, len, access }];
        if ["x", "dx", "dy", "output"].contains(&name) {
            profile.check_buffers(program.op, &operand, "take fewer images in a call")?;
        } else {
            profile.check_bindings(program.op, &operand, "take fewer channels in a call")?;
        }
        program.operands.extend(operand);
    }
    Ok(())
}

/// The builder methods that set the shape of a layer.
macro_rules! layer_builders {
    ($($path:ident).+) => {
        /// Sets the distance from one window to the next, down and across; 1 by default.
        #[must_use]
        pub fn stride(mut self, stride: [usize; 2]) -> Self {
            self.$($path).+.stride = stride;
            self
        }

        /// Pads with zeros above and below, and left and right; none by default.
        #[must_use]
        pub fn pad(self, [h, w]: [usize; 2]) -> Self {
            self.pad_each([h, w, h, w])
        }

        /// Pads each side by itself: top, left, bottom, right.
        #[must_use]
        pub fn pad_each(mut self, pads: [usize; 4]) -> Self {
            self.$($path).+.pads = pads;
            self
        }

        /// Sets the distance from one cell of a window to the next, down and across; 1 by default.
        #[must_use]
        pub fn dilation(mut self, dilation: [usize; 2]) -> Self {
            self.$($path).+.dilation = dilation;
            self
        }

        /// Divides the channels into this number of groups, each convolved apart; 1 by default.
        #[must_use]
        pub fn groups(mut self, groups: usize) -> Self {
            self.$($path).+.groups = groups;
            self
        }

        /// Sets how exact the sums are; [`Precision::Strict`](crate::dense::Precision::Strict) by default. On a
        /// [`Gpu`](crate::Gpu) it runs f16 on cooperative matrices where that is faster, and
        /// [`Precision::Exact`](crate::dense::Precision::Exact) does not; f32 is always exact there.
        #[must_use]
        pub fn precision(mut self, precision: crate::dense::Precision) -> Self {
            self.$($path).+.precision = precision;
            self
        }

        /// Lays channels next to each other in all operands: images are N x H x W x C in memory, weights M x R x S x
        /// C / groups. Shapes are still given as N, C, H, W. The default is the order of the shapes.
        #[must_use]
        pub fn channels_last(mut self) -> Self {
            self.$($path).+.last = true;
            self
        }
    };
}
pub(crate) use layer_builders;

#[cfg(test)]
mod tests;
