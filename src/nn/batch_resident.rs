//! Batch norm in training and its gradients in one pass: each channel stays in the registers of its workgroups.

use super::batch_channels::{BatchChannels, ChannelParams, WORKGROUP};
use crate::error::{Result, err};
use crate::primitives::clear_words;
use crate::program::{Binding, DeviceClass, Grid, Kernel, Program, Variant, kernel_params};
use crate::shader::Spec;

pub(super) const RESIDENT: &str = "resident";

pub(super) const VARIANTS: &[Variant] = &[
    Variant::portable("parts", "parts of each channel, then their join, then a pass over the elements"),
    Variant::portable(RESIDENT, "one pass: workgroups hold a channel in registers and exchange its statistics")
        .in_any_order(),
];

/// Words that a thread holds in registers; half of them if its loads are of single words, which take longer to compile.
const HELD_WORDS: u64 = 104;
/// The same of a tile, where a channel has several: a thread then holds two of them.
const TILE_WORDS: u64 = 48;
/// Maximum workgroups that take tiles in turn: more than run at the same time.
const TAKERS: u64 = 1024;
/// Threads of a workgroup that holds a channel of at most `4 * SMALL_WORKGROUP` items.
const SMALL_WORKGROUP: u64 = 64;

/// Maximum tiles of a channel. They wait for each other, so all of them should run at the same time.
const MAX_TILES: u64 = 200;

kernel_params! { struct BatchOpenParams { posts: u32, channels: u32 } }

/// How a channel is cut into tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChannelTiles {
    workgroup: u64,
    /// Items of a thread.
    items: u64,
    tiles: u64,
}

/// Declares the switch of an op's tests that keeps tiles from posting.
macro_rules! leave_out_posts {
    () => {
        /// For tests: in `resident` every other tile posts nothing, as if its workgroup were stopped.
        #[doc(hidden)]
        #[must_use]
        pub fn leave_out_posts(mut self) -> Self {
            self.leave_out = true;
            self
        }
    };
}
pub(super) use leave_out_posts;

impl BatchChannels<'_> {
    /// Cuts channels into tiles, of each of which a workgroup holds `operands` arrays. `None` if a channel is too
    /// large, or `x` does not fit a binding.
    pub(super) fn tiles(&self, operands: u64) -> Option<ChannelTiles> {
        let width = if self.vectors() { 4 } else { 1 };
        let items = self.count() / width;
        let of_words = |words| words / width.max(2) / operands;
        let workgroup = if items <= 4 * SMALL_WORKGROUP { SMALL_WORKGROUP } else { WORKGROUP };
        let whole = items.div_ceil(workgroup);
        let found = if whole <= of_words(HELD_WORDS) {
            ChannelTiles { workgroup, items: whole, tiles: 1 }
        } else {
            let tiles = items.div_ceil(WORKGROUP * of_words(TILE_WORDS));
            // Tiles of equal size.
            let items = items.div_ceil(WORKGROUP * tiles);
            Some(ChannelTiles { workgroup, items, tiles }).filter(|found| found.tiles <= MAX_TILES)?
        };
        let fits = self.profile.chunks(self.shape[0] as u64, self.image_bytes()).count() == 1;
        fits.then_some(found)
    }

    /// Chooses between the variants.
    ///
    /// Microseconds on an H100 (Vulkan, driver 580.159.04), `resident` and `parts`: 64 x 64 x 112 x 112, 165 and 228,
    /// gradients 242 and 432; 32 x 128 x 56 x 56, 57 and 69, gradients 77 and 128; 192 x 16 x 112 x 112, of 196 tiles,
    /// 154 and 188, but 214 as 236 tiles; 64 x 512 x 7 x 7, of one tile, 11 and 24, gradients 12 and 36.
    pub(super) fn preferred(&self, tiles: Option<ChannelTiles>) -> (&'static str, String) {
        let quirks = self.profile.quirks;
        match tiles {
            Some(ChannelTiles { tiles: 1, .. }) => (RESIDENT, "a workgroup holds a channel, which is read once".into()),
            // Elsewhere nobody has shown that the tiles of a channel run at the same time.
            Some(_) if self.profile.class == DeviceClass::Discrete && !quirks.waiting_starves => {
                (RESIDENT, "a few workgroups hold a channel, which is read once".into())
            }
            Some(_) => ("parts", "workgroups that wait for each other may be slow on this device".into()),
            None => ("parts", "a channel is too large for a few workgroups".into()),
        }
    }

    /// Appends the kernel, and what clears the posts.
    pub(super) fn resident(
        &self, program: &mut Program, tiles: Option<ChannelTiles>, spec: Spec, mut bindings: Vec<Binding>, words: u64,
        leave_out: bool,
    ) -> Result<()> {
        let Some(ChannelTiles { workgroup, items, tiles }) = tiles else {
            let [n, c, h, w] = self.shape;
            return Err(err!(
                Unsupported,
                "{}: the variant `resident` cuts a channel into at most {MAX_TILES} tiles, and binds x at once; {n} x {c} x \
                 {h} x {w} elements are too many for that on this device; use `auto`",
                self.op
            ));
        };
        let several = tiles > 1;
        let mut spec = spec;
        if several {
            let words = 1 + words * self.channels() * tiles;
            // The running statistics, if there are new ones, are copied behind the posts.
            let posts = if let [_, _, _, mean, variance, _, _, _] = bindings[..] {
                let posts = program.scratch(4 * (words + 2 * self.channels()));
                let kernel = Kernel::of_file("nn/batch_norm_train_open", Spec::new());
                let kernel = program.kernel(kernel);
                let params = BatchOpenParams { posts: words as u32, channels: self.channels() as u32 };
                let threads = words + 2 * self.channels();
                let grid = Grid::fold(threads.div_ceil(WORKGROUP));
                program.dispatch(kernel, &params, vec![mean, variance, posts], grid);
                bindings.drain(3..5);
                spec = spec.constant("OUTPUT_BINDING", 4);
                posts
            } else {
                let posts = program.scratch(4 * words);
                clear_words(program, posts, words);
                posts
            };
            bindings.push(posts);
        }
        let spins = if self.profile.quirks.waiting_starves { 4 } else { 64 };
        // A driver may end a thread's loops after some rounds: those in which every tile of each channel is missing.
        let takes = self.profile.loop_steps((tiles + 3) * (u64::from(spins) + 2 * items + 4), 1 << 31);
        let mut spec = spec
            .constant("WORKGROUP_SIZE", workgroup as u32)
            .constant("ITEMS", items as u32)
            .flag("VECTORS", self.vectors())
            .flag("SEVERAL", several);
        if several {
            spec = spec
                .constant("POSTS_BINDING", bindings.len() as u32)
                .constant("SPINS", spins)
                .constant("TAKES", takes as u32)
                .flag("LEAVING_OUT", leave_out);
        }
        let params = ChannelParams {
            images: self.shape[0] as u32,
            channels: self.channels() as u32,
            len: self.plane() as u32,
            parts: tiles as u32,
            count: self.count() as f32,
            eps: self.eps,
            momentum: self.momentum,
            correction: self.correction,
            ..ChannelParams::default()
        };
        let entry = "batch_norm_train_resident";
        let kernel = program.kernel(Kernel::library("nn/batch_norm_train_resident", entry, spec));
        let all = self.channels() * tiles;
        let workgroups = if several { all.min(TAKERS).max(all.div_ceil(takes)) } else { all };
        program.dispatch(kernel, &params, bindings, Grid::fold(workgroups));
        Ok(())
    }
}
