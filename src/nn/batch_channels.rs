//! Sums and statistics over the channels of a batch of images: the first passes of batch norm in training.

use crate::program::prelude::*;

kernel_params! {
    /// Parameters of the kernels that sum over a channel.
    #[derive(Default)]
    pub(super) struct ChannelParams {
        images: u32,
        channels: u32,
        len: u32,
        origin: u32,
        block: u32,
        parts: u32,
        first_part: u32,
        all_parts: u32,
        count: f32,
        eps: f32,
        momentum: f32,
        correction: f32,
    }
}

/// The threads of a workgroup of all kernels.
pub(super) const WORKGROUP: u64 = 256;

/// The batch and the constants of its norm.
#[derive(Clone, Copy)]
pub(super) struct BatchChannels<'a> {
    pub(super) op: &'static str,
    pub(super) shape: [usize; 4],
    pub(super) eps: f32,
    pub(super) momentum: f32,
    /// From the variance to the one that is averaged.
    pub(super) correction: f32,
    pub(super) profile: &'a DeviceProfile,
}

#[derive(Clone, Copy)]
pub(super) struct ChannelStatistics {
    pub(super) mean: Binding,
    pub(super) variance: Binding,
}

impl BatchChannels<'_> {
    pub(super) fn plane(&self) -> u64 {
        (self.shape[2] * self.shape[3]) as u64
    }

    pub(super) fn count(&self) -> u64 {
        self.shape[0] as u64 * self.plane()
    }

    pub(super) fn vectors(&self) -> bool {
        self.plane().is_multiple_of(4)
    }

    pub(super) fn channels(&self) -> u64 {
        self.shape[1] as u64
    }

    pub(super) fn image_bytes(&self) -> u64 {
        4 * self.channels() * self.plane()
    }

    /// Fails unless `x` fits a buffer and one image fits a binding.
    pub(super) fn check(&self, x: &Operand) -> Result<()> {
        self.profile.check_buffers(self.op, std::slice::from_ref(x), "normalise fewer images at a time")?;
        let image = format_args!("an image of {} channels of {} elements", self.channels(), self.plane());
        self.profile.check_row(self.op, image, self.image_bytes(), "take fewer channels at a time")
    }

    /// Finds mean and variance of each channel of `x`. Updates the running mean and variance `running` in place or, if
    /// there are four, writes the last two.
    pub(super) fn statistics(&self, program: &mut Program, x: Resource, running: &[Binding]) -> ChannelStatistics {
        let [mean, variance] = [(); 2].map(|()| program.scratch(4 * self.channels()));
        self.join(program, &[x], None, [mean, variance], running);
        ChannelStatistics { mean, variance }
    }

    /// Sums `dy`, and `dy` times the normalised `x`, over each channel.
    pub(super) fn gradients(
        &self, program: &mut Program, [x, dy]: [Resource; 2], statistics: ChannelStatistics,
        [dbeta, dgamma]: [Binding; 2],
    ) {
        self.join(program, &[x, dy], Some(statistics), [dbeta, dgamma], &[]);
    }

    /// Writes the states of parts to scratch, and what they add up to to `results`.
    fn join(
        &self, program: &mut Program, images: &[Resource], statistics: Option<ChannelStatistics>,
        results: [Binding; 2], running: &[Binding],
    ) {
        let (channels, plane) = (self.channels(), self.plane());
        let items = plane / if self.vectors() { 4 } else { 1 };
        let chunks: Vec<_> = self.profile.chunks(self.shape[0] as u64, self.image_bytes()).collect();
        // Enough workgroups to fill a card, of at least four items a thread.
        let wanted = if self.profile.quirks.few_cores { 16 } else { 2048 };
        let most = WORKGROUP * self.profile.loop_steps(2, 1 << 20);
        let parts_of = |images: u64| {
            let items = images * items;
            let parts = (wanted / channels).clamp(1, items.div_ceil(4 * WORKGROUP));
            let block = items.div_ceil(parts).min(most);
            (block, items.div_ceil(block))
        };
        let all_parts: u64 = chunks.iter().map(|chunk| parts_of(chunk.count).1).sum();
        let partials = program.scratch(16 * channels * all_parts);
        let params = ChannelParams {
            channels: channels as u32,
            len: plane as u32,
            all_parts: all_parts as u32,
            count: self.count() as f32,
            eps: self.eps,
            momentum: self.momentum,
            correction: self.correction,
            ..ChannelParams::default()
        };
        let spec = Spec::new().constant("WORKGROUP_SIZE", WORKGROUP as u32).flag("GRADIENTS", statistics.is_some());
        let entry = "batch_norm_train_partials";
        let of_parts = spec.clone().flag("VECTORS", self.vectors());
        let kernel = program.kernel(Kernel::library("nn/batch_norm_train_partials", entry, of_parts));
        let mut first_part = 0;
        for chunk in chunks {
            let (block, parts) = parts_of(chunk.count);
            let params = ChannelParams {
                images: chunk.count as u32,
                origin: (chunk.span(self.image_bytes()).before / 4) as u32,
                block: block as u32,
                parts: parts as u32,
                first_part,
                ..params
            };
            first_part += parts as u32;
            let mut bound = images.iter().map(|&images| chunk.of(images, self.image_bytes()));
            let mut bindings: Vec<_> = bound.next().into_iter().chain([partials]).collect();
            bindings.extend(bound);
            bindings.extend(statistics.into_iter().flat_map(|known| [known.mean, known.variance]));
            program.dispatch(kernel, &params, bindings, Grid::fold(channels * parts));
        }
        let entry = "batch_norm_train_join";
        let spec = spec.flag("RUNNING", !running.is_empty()).flag("IN_PLACE", running.len() == 2);
        let kernel = program.kernel(Kernel::library("nn/batch_norm_train_join", entry, spec));
        let bindings = [partials].into_iter().chain(results).chain(running.iter().copied()).collect();
        program.dispatch(kernel, &params, bindings, Grid::fold(channels));
    }
}
