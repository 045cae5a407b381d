//! The ways to compute attention. Resolves the name of a variant, once.

use super::attention::Attention;
use super::coop::{self, CoopTile};
use super::flash::{self, FlashTile};
use super::kv_storage::KvType;
use super::layout::AttentionLowering;
use super::{naive, split};
use crate::program::prelude::*;

pub(super) const VARIANTS: &[Variant] = &[
    Variant::portable("naive", "three kernels: all scores in memory, their softmax, the product with the values"),
    Variant::portable(
        "flash",
        "one kernel with an online softmax: scores stay in registers, keys are read tile by tile",
    ),
    Variant::portable(
        "split-kv",
        "keys split over workgroups, each read once for the heads that share it; a second kernel merges",
    ),
    Variant {
        name: "coop",
        about: "`flash` on cooperative matrices, for f16 q, k and v: weights are rounded to f16, sums are f32",
        requires: Requires { subgroups: true, f16: true, cooperative: true },
        // naga translates matrices of 16 x 16 to SPIR-V only; Tint and standard WGSL have none.
        translations: &[Translation::SpirV],
        any_order: false,
    },
];

pub(super) enum AttentionWay {
    Naive,
    Flash(FlashTile),
    SplitKv,
    Coop(CoopTile),
}

impl AttentionWay {
    /// Resolves a variant. Rejects what it or the device cannot run.
    pub(super) fn of(variant: &str, of: &AttentionLowering<'_>) -> Result<Self> {
        if of.op.scores.is_some() && variant != "naive" {
            let name = &of.name;
            return Err(err!(
                Unsupported,
                "{name}: the variant `{variant}` keeps no scores; only `naive` can return them; use `auto`"
            ));
        }
        match variant {
            "naive" => naive::check(of).map(|()| Self::Naive),
            "split-kv" => split::check(of).map(|()| Self::SplitKv),
            "coop" => coop::check(of).map(Self::Coop),
            _ => flash::check(of).map(Self::Flash),
        }
    }

    pub(super) fn lower(&self, of: &AttentionLowering<'_>, program: &mut Program) -> Result<()> {
        match self {
            Self::Naive => naive::lower(of, program),
            Self::Flash(tile) => flash::lower(*tile, of, program),
            Self::SplitKv => split::lower(of, program),
            Self::Coop(tile) => coop::lower(*tile, of, program),
        }
    }
}

/// Chooses a variant, with the reason.
pub(super) fn policy(of: &AttentionLowering<'_>) -> (&'static str, String) {
    let rows = of.rows_of_pair();
    if of.op.scores.is_some() {
        ("naive", "scores are a result".to_owned())
    } else if (of.op.queries <= 4 || rows <= 16) && split::fits(of) {
        ("split-kv", format!("{rows} rows share keys: reading keys takes the time"))
    } else if coop::missing(of).is_none() {
        ("coop", "the device multiplies f16 on cooperative matrices".to_owned())
    } else if flash::fits(of) {
        ("flash", "scores stay in registers".to_owned())
    } else {
        ("naive", "too many keys, or too large values, for `flash` on this device".to_owned())
    }
}

/// Tells whether a device may run an attention of f16 on cooperative matrices, which round its weights.
pub(crate) fn may_run_on_matrices(op: &Attention) -> bool {
    let takes = op.kv == Some(KvType::F16) && op.paging.is_none() && op.scores.is_none() && coop::takes_heads(op);
    op.variant == "coop" || op.variant == "auto" && takes && op.queries > 4
}
