//! Variants that measured faster on a device, and variants that failed there.

use super::DecidedBy;
use std::collections::BTreeMap;
use std::fmt;

/// Choices that lowering prefers to its own policies. Empty unless something was measured on the device: see the
/// module `tune`.
///
/// ```
/// use tilework::program::{Choice, DeviceProfile, Op};
/// use tilework::{Reduce, Sum};
///
/// let mut profile = DeviceProfile::h100();
/// profile.choices.forced.insert("reduce".into(), Choice::variant("shared", "as an example"));
/// let program = Op::<f32>::lower(&Reduce::new(Sum, 1 << 20), &profile)?;
/// assert_eq!((program.variant(), program.decision.why.as_str()), ("shared", "as an example"));
/// # Ok::<(), tilework::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Choices {
    /// The variant that `auto` takes, by name of the op, if it fits the device.
    pub forced: BTreeMap<String, Choice>,
    /// Variants that failed. `auto` skips them, and naming one is an error.
    pub denied: Vec<Denied>,
}

/// A variant, and for some a row of its table of tiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Name of the variant.
    pub variant: String,
    /// Name of the row, if the variant has a table: `128x128x8 by 8x8`. `None` leaves the row to the op's policy.
    pub row: Option<String>,
    /// Who chose it.
    pub by: DecidedBy,
    /// The reason, for reports.
    pub why: String,
}

impl Choice {
    /// Makes a choice of a variant that measured faster. The op's policy picks the row.
    pub fn variant(name: &str, why: &str) -> Self {
        Self { variant: name.to_owned(), row: None, by: DecidedBy::Tuned, why: why.to_owned() }
    }
}

/// A variant that gave wrong results on a driver or lost its device, or one row of its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    /// Name of the op.
    pub op: String,
    /// Name of the variant.
    pub variant: String,
    /// Name of the row; `None` denies the whole variant.
    pub row: Option<String>,
    /// The failure.
    pub why: String,
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.op, self.variant)?;
        if let Some(row) = &self.row {
            write!(f, ", {row}")?;
        }
        write!(f, ": {}", self.why)
    }
}

impl Choices {
    pub(crate) fn row(&self, op: &str, variant: &str) -> Option<&str> {
        self.forced.get(op).filter(|choice| choice.variant == variant)?.row.as_deref()
    }

    pub(crate) fn denies(&self, op: &str, variant: &str) -> Option<&Denied> {
        self.denied.iter().find(|d| d.op == op && d.variant == variant && d.row.is_none())
    }

    pub(crate) fn denies_row(&self, op: &str, variant: &str, row: impl FnOnce() -> String) -> bool {
        let mut rows = self.denied.iter().filter(|d| d.op == op && d.variant == variant && d.row.is_some());
        // The name is made only if some row is denied.
        let Some(first) = rows.next() else { return false };
        let row = row();
        first.row.as_deref() == Some(&row) || rows.any(|d| d.row.as_deref() == Some(&row))
    }
}

/// Names a row of a table of tiles.
pub(crate) fn row_name([m, n, k]: [u32; 3], [rows, columns]: [u32; 2]) -> String {
    format!("{m}x{n}x{k} by {rows}x{columns}")
}
