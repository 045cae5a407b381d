//! Scratch in which the tiles of a single pass post their totals: `shaders/primitives/scan_lookback.wgsl`.

use crate::program::prelude::*;

/// Distance between the posts of neighbouring tiles, see the shader.
const SPREAD: u64 = 64;
const LEAST_ROWS: u64 = 16;

/// Threads of a workgroup of the kernel that sets posts to not ready.
const CLEAR_SIZE: u64 = 256;

/// Declares the switch of an op's tests that keeps tiles from posting, stored in these fields.
macro_rules! leave_out_posts {
    ($($field:ident).+) => {
        /// For tests: in a variant of a single pass, one tile in `one_in` posts nothing, as if its workgroup were
        /// stopped. The results must be the same.
        #[doc(hidden)]
        #[must_use]
        pub fn leave_out_posts(mut self, one_in: u32) -> Self {
            self.$($field).+ = one_in;
            self
        }
    };
}
pub(super) use leave_out_posts;

kernel_params! { struct ClearPostsParams { words: u32 } }

pub(super) struct Posts {
    pub(super) tiles: u64,
    pub(super) words: u64,
    /// A number of heads goes with each value.
    pub(super) counted: bool,
    /// Dispatches; each passes its total to the next.
    pub(super) chunks: u64,
}

impl Posts {
    pub(super) fn scratch_words(&self) -> u64 {
        let places = 2 * SPREAD * self.tiles.div_ceil(SPREAD).max(LEAST_ROWS);
        1 + self.words * places + if self.counted { places } else { self.words * self.chunks }
    }

    /// Sets the posts to not ready; a single tile reads none.
    pub(super) fn clear(&self, program: &mut Program, posts: Binding) {
        if self.tiles > 1 {
            clear_words(program, posts, self.scratch_words());
        }
    }

    /// Returns the spec of a kernel that looks back at posts bound at `binding`. After SPINS reads of a missing
    /// post the reader computes it itself. For tests, one tile in `leave_out` posts nothing; 0 turns this off.
    pub(super) fn spec(&self, spec: Spec, profile: &DeviceProfile, binding: u32, leave_out: u32) -> Spec {
        let spins = if profile.quirks.waiting_starves { 4 } else { 32 };
        // A GPU starts workgroups almost in order of their index; a ticket that guarantees the order costs an H100 3 %.
        // Each core of a processor takes a range of workgroups, and would compute half of the posts for others.
        let ticket = self.tiles > 1 && profile.quirks.unordered_workgroups;
        let spec = spec.constant("ACC_WORDS", self.words as u32);
        let spec = spec.flag("TICKET", ticket).constant("POSTS_BINDING", binding).constant("SPINS", spins);
        if leave_out == 0 {
            return spec;
        }
        spec.flag("LEAVING_OUT", true).constant("LEAVE_OUT", leave_out)
    }
}

/// Sets the first words of a buffer to 0.
pub(crate) fn clear_words(program: &mut Program, what: Binding, words: u64) {
    let kernel = program.kernel(Kernel::library("primitives/scan_clear", "scan_clear", Spec::new()));
    let params = ClearPostsParams { words: words as u32 };
    program.dispatch(kernel, &params, vec![what], Grid::fold(words.div_ceil(CLEAR_SIZE)));
}
