//! Progress bars.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// A progress bar on standard error, hidden if that is no terminal. It redraws every `milliseconds`, or with 0 only
/// when it moves.
pub(crate) fn bar(len: u64, template: &str, milliseconds: u64) -> ProgressBar {
    let bar = ProgressBar::new(len);
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    if milliseconds > 0 {
        bar.enable_steady_tick(Duration::from_millis(milliseconds));
    }
    bar
}
