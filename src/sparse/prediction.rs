//! The time of a product by each format, predicted from row statistics.

use super::matrix_layout::MatrixLayout;
use super::{Format, Spmv, Statistics};
use crate::program::prelude::*;

/// Bytes a second that products stream from memory, and those of sorted coordinates, whose segmented sums cost more.
const STREAM: f64 = 2.7e12;
const STREAM_COO: f64 = 1.6e12;
/// Seconds of a product of nothing, and of each dispatch after the first.
const BASE: f64 = 5.8e-6;
const DISPATCH: f64 = 2.8e-6;
/// Seconds of an entry for a thread that walks a row alone, with four loads in flight and with one, and of a step of a
/// subgroup that walks a row together.
const WALK: f64 = 65e-9;
const WALK_PADDED: f64 = 110e-9;
const STEP: f64 = 480e-9;
/// Work that workgroups share evenly: times the stream, and seconds of a row.
const SHARED: f64 = 1.25;
const SHARED_ROW: f64 = 3e-12;

impl Statistics {
    /// Predicts the seconds of [`Spmv`] by the formats `csr`, `ell`, `jds`, `coo` and `hybrid`, in this order: the
    /// larger of the time to read what the format stores, padding included, and the time of the thread with the longest
    /// walk, and the dispatches. The constants are those of an H100. Gathers of `x`, alike in all formats, are left
    /// out.
    ///
    /// ```
    /// use tilework::program::DeviceProfile;
    /// use tilework::sparse::Csr;
    ///
    /// // 4 rows of 5000 entries: a thread of ELL walks a row alone.
    /// let row_ptrs = (0..=4).map(|row| 5000 * row).collect();
    /// let (col_idxs, values) = ((0..4).flat_map(|_| 0..5000).collect(), vec![1.0; 20_000]);
    /// let statistics = Csr { rows: 4, cols: 5000, row_ptrs, col_idxs, values }.analyse();
    /// let times = statistics.predict(&DeviceProfile::h100());
    /// assert_eq!((times[0].0, times[1].0), ("csr", "ell"));
    /// assert!(times[0].1 * 10.0 < times[1].1);
    /// ```
    pub fn predict(&self, profile: &DeviceProfile) -> [(&'static str, f64); 5] {
        let Self { rows, entries, longest, hybrid_width, hybrid_list, .. } = *self;
        let [m, e, longest_row] = [rows, entries, longest].map(|n| n as f64);
        let launches = |n: f64| BASE + DISPATCH * (n - 1.0);
        // A warp of 32 rows stops at its longest one: half of the padding is read.
        let padded = |width: f64, kept: f64| (8.0 * (kept + (m * width - kept) / 2.0) + 4.0 * m) / STREAM;
        let coordinates = |entries: f64| 12.0 * entries / STREAM_COO;
        let ell = launches(1.0) + padded(longest_row, e).max(WALK_PADDED * longest_row);
        let jds = launches(1.0) + ((8.0 * e + 8.0 * m) / STREAM).max(WALK_PADDED * longest_row);
        let coo = launches(4.0) + coordinates(e) + 4.0 * m / STREAM;
        let (width, list) = (hybrid_width as f64, hybrid_list as f64);
        let of_list = if hybrid_list > 0 { 3.0 * DISPATCH + coordinates(list) } else { 0.0 };
        let hybrid = launches(1.0) + padded(width, e - list).max(WALK_PADDED * width) + of_list;
        [("csr", self.predict_csr(profile)), ("ell", ell), ("jds", jds), ("coo", coo), ("hybrid", hybrid)]
    }

    /// Predicts the seconds of compressed rows by the variant that [`Spmv`] takes.
    fn predict_csr(&self, profile: &DeviceProfile) -> f64 {
        let Self { rows, cols, entries, longest, mean, .. } = *self;
        let [m, e, longest_row] = [rows, entries, longest].map(|n| n as f64);
        let matrix = MatrixLayout { rows, cols, entries, longest, format: Format::Csr, values: DType::F32 };
        let spmv = Spmv::new(matrix);
        let stream = (8.0 * e + 8.0 * m) / STREAM;
        match spmv.choose(profile).0 {
            // Neighbouring threads read entries that lie a row apart.
            "csr-scalar" => BASE + (stream * (1.0 + mean / 8.0)).max(WALK * longest_row),
            "csr-vector" => {
                let lanes = f64::from(spmv.lanes(profile));
                // Few lanes find most of their entries in a line that they loaded before.
                let step = WALK + (STEP - WALK) * lanes.min(32.0) / 32.0;
                BASE + stream.max(step * (longest_row / lanes).ceil())
            }
            _ => BASE + 3.0 * DISPATCH + SHARED * stream + SHARED_ROW * m,
        }
    }

    /// Returns the format with the shortest [predicted](Self::predict) time, and why. Another format than `csr` must
    /// gain a twentieth, for the conversion. On a processor it is `csr`: one thread walks a row, without padding.
    ///
    /// ```
    /// use tilework::program::DeviceProfile;
    /// use tilework::sparse::Csr;
    ///
    /// // A million rows of two entries, and an entry in each column of the first row.
    /// let n = 1 << 20;
    /// let row_ptrs = (0..=n).map(|row| if row > 0 { n + 2 * (row - 1) } else { 0 }).collect();
    /// let col_idxs: Vec<u32> = (0..n).chain((1..n).flat_map(|row| [0, row])).collect();
    /// let values = vec![1.0; col_idxs.len()];
    /// let arrow = Csr { rows: n as usize, cols: n as usize, row_ptrs, col_idxs, values };
    /// assert_eq!(arrow.analyse().format(&DeviceProfile::h100()).0, "hybrid");
    /// assert_eq!(arrow.analyse().format(&DeviceProfile::mesa()).0, "csr");
    /// ```
    pub fn format(&self, profile: &DeviceProfile) -> (&'static str, String) {
        if self.entries == 0 {
            return ("csr", "there are no entries".into());
        }
        if profile.quirks.serial_workgroups {
            return ("csr", "on a processor one thread walks a row fastest".into());
        }
        let times = self.predict(profile);
        let csr = times[0].1;
        let gains = times.into_iter().filter(|(_, seconds)| *seconds < csr / 1.05);
        let (name, seconds) = gains.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or(times[0]);
        let others = times.iter().filter(|(other, _)| *other != name);
        let others: Vec<_> = others.map(|(other, seconds)| format!("{other} {:.1}", seconds * 1e6)).collect();
        (name, format!("{:.1} us predicted; {}", seconds * 1e6, others.join(", ")))
    }
}

#[cfg(test)]
mod tests;
