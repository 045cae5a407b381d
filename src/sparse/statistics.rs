//! Row statistics, and the format that suits a matrix.

use super::Csr;
use super::matrix_layout::OUTLIER;
use std::fmt;

/// Row statistics of a matrix, from [`Csr::analyse`] or [`Gpu::analyse_matrix`](crate::Gpu::analyse_matrix).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Statistics {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// Entries of the matrix.
    pub entries: usize,
    /// Mean number of entries in a row.
    pub mean: f64,
    /// Variance of the number of entries in a row.
    pub variance: f64,
    /// Entries of the longest row.
    pub longest: usize,
    /// Rows without entries.
    pub empty_rows: usize,
    /// The largest |row - column| of an entry.
    pub bandwidth: usize,
    /// Whether all entries lie on or on one side of the diagonal, and row lengths fall or rise evenly.
    pub triangular: bool,
    /// The [`Hybrid`](super::Hybrid) width that holds four of five rows entirely.
    pub hybrid_width: usize,
    /// Entries that do not fit this width.
    pub hybrid_list: usize,
}

/// The padding for each entry above which a padded format does not pay.
const MAX_PADDING: f64 = 0.2;
/// With fewer entries in a row on average, most rows are empty and most of the traffic is pointers.
const VERY_SPARSE: f64 = 0.5;

/// The exact sums behind the statistics, from the host or from a device.
pub(super) struct Sums {
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) entries: usize,
    /// The sum of the squared row lengths.
    pub(super) squares: u128,
    pub(super) longest: usize,
    pub(super) empty_rows: usize,
    pub(super) bandwidth: usize,
    /// Whether all entries lie on or on one side of the diagonal.
    pub(super) one_side: bool,
    pub(super) median: usize,
    pub(super) hybrid_width: usize,
    pub(super) hybrid_list: usize,
}

impl Statistics {
    pub(super) fn from_sums(sums: &Sums) -> Self {
        let Sums { rows, cols, entries, squares, longest, empty_rows, bandwidth, .. } = *sums;
        let (n, total) = (rows.max(1) as u128, entries as u128);
        Self {
            rows,
            cols,
            entries,
            mean: entries as f64 / rows.max(1) as f64,
            // In integers up to the last step, so that the order of rows does not matter.
            variance: (n * squares).saturating_sub(total * total) as f64 / (n * n) as f64,
            longest,
            empty_rows,
            bandwidth,
            // The median row of a triangle is half as long as the longest.
            triangular: sums.one_side && rows > 0 && sums.median.abs_diff(longest / 2) <= 1 + longest / 8,
            hybrid_width: sums.hybrid_width,
            hybrid_list: sums.hybrid_list,
        }
    }

    /// Returns the format by the textbook's rule, and why, whatever the device: `ell` for rows of similar length, `jds`
    /// for triangles, `coo` if most rows are empty, `hybrid` if a few rows are much longer than the others, else `csr`.
    /// [`format`](Self::format) predicts the time instead.
    ///
    /// ```
    /// use tilework::sparse::Csr;
    ///
    /// let n = 100;
    /// let (row_ptrs, col_idxs) = ((0..=n as u32).collect(), (0..n as u32).collect());
    /// let diagonal = Csr { rows: n, cols: n, row_ptrs, col_idxs, values: vec![2.0; n] };
    /// let statistics = diagonal.analyse();
    /// assert_eq!((statistics.longest, statistics.bandwidth, statistics.variance), (1, 0, 0.0));
    /// assert_eq!(statistics.textbook_format().0, "ell");
    /// ```
    pub fn textbook_format(&self) -> (&'static str, String) {
        let Self { rows, entries, mean, longest, .. } = *self;
        let fits = |slots: usize| slots as f64 <= (1.0 + MAX_PADDING) * entries as f64;
        if entries == 0 {
            ("csr", "there are no entries".into())
        } else if mean < VERY_SPARSE {
            ("coo", format!("rows have {mean:.2} entries on average: most are empty"))
        } else if fits(rows.saturating_mul(longest)) {
            ("ell", format!("rows have {mean:.1} entries on average and at most {longest}: little padding"))
        } else if self.triangular {
            ("jds", "the matrix is a triangle: row lengths fall evenly".into())
        } else if longest as f64 > OUTLIER as f64 * mean
            && self.hybrid_width > 0
            && fits(rows.saturating_mul(self.hybrid_width))
        {
            let width = self.hybrid_width;
            ("hybrid", format!("four of five rows have at most {width} entries, the longest {longest}"))
        } else {
            ("csr", format!("row lengths vary: {mean:.1} entries on average, at most {longest}"))
        }
    }
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, cols, entries, mean, variance, longest, empty_rows, bandwidth, .. } = *self;
        writeln!(f, "{rows} x {cols}, {entries} entries, bandwidth {bandwidth}")?;
        writeln!(f, "  rows        {mean:.2} entries on average, variance {variance:.2}, at most {longest}")?;
        writeln!(f, "  empty rows  {empty_rows}")?;
        let (format, why) = self.textbook_format();
        write!(f, "  textbook    {format}: {why}")
    }
}

impl Csr {
    /// Measures the rows of the matrix, which must be valid.
    pub fn analyse(&self) -> Statistics {
        let lengths = || self.row_ptrs.windows(2).map(|pair| (pair[1] - pair[0]) as usize);
        let longest = lengths().max().unwrap_or(0);
        // Bisects the range of lengths, which takes no memory.
        let nth = |n: usize| {
            let (mut low, mut high) = (0, longest);
            while low < high {
                let middle = low + (high - low) / 2;
                if lengths().filter(|&len| len <= middle).count() > n {
                    high = middle;
                } else {
                    low = middle + 1;
                }
            }
            low
        };
        let entries = || (0..self.rows).flat_map(|row| self.row(row).map(move |(col, _)| (row, col as usize)));
        let hybrid_width = nth(self.rows * 4 / 5);
        Statistics::from_sums(&Sums {
            rows: self.rows,
            cols: self.cols,
            entries: self.entries(),
            squares: lengths().map(|len| (len as u128).pow(2)).sum(),
            longest,
            empty_rows: lengths().filter(|len| *len == 0).count(),
            bandwidth: entries().map(|(row, col)| row.abs_diff(col)).max().unwrap_or(0),
            one_side: entries().all(|(row, col)| col <= row) || entries().all(|(row, col)| col >= row),
            median: nth(self.rows / 2),
            hybrid_width,
            hybrid_list: lengths().map(|len| len.saturating_sub(hybrid_width)).sum(),
        })
    }
}

#[cfg(test)]
mod tests;
