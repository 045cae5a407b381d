//! What rows look like, and which format suits them.

use super::Csr;
use super::matrix_layout::OUTLIER;
use std::fmt;

/// Row statistics of a matrix: made by [`Csr::analyse`], or by [`Gpu::analyse_matrix`](crate::Gpu::analyse_matrix) of a
/// matrix on a device.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Statistics {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// Entries of the matrix.
    pub entries: usize,
    /// Entries of a row in the mean.
    pub mean: f64,
    /// Variance of the entries of a row, over all rows.
    pub variance: f64,
    /// Entries of the longest row.
    pub longest: usize,
    /// Rows without entries.
    pub empty_rows: usize,
    /// The most that row and column of an entry differ by.
    pub bandwidth: usize,
    /// Whether all entries lie on one side of the diagonal, or on it, and rows fill it evenly.
    pub triangular: bool,
    /// Places of [`Hybrid`](super::Hybrid) in which four of five rows fit.
    pub hybrid_width: usize,
}

/// Places that padding may add to each entry before a padded format does not pay.
const MAX_PADDING: f64 = 0.2;
/// If rows have fewer entries on average, most are empty and most bytes read are pointers.
const VERY_SPARSE: f64 = 0.5;

/// What statistics are made of, exactly: counted here or on a device.
pub(super) struct Sums {
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) entries: usize,
    /// Of the entries of each row.
    pub(super) squares: u128,
    pub(super) longest: usize,
    pub(super) empty_rows: usize,
    pub(super) bandwidth: usize,
    /// Whether no two entries lie on two sides of the diagonal.
    pub(super) one_side: bool,
    /// Entries of the row in the middle, by length.
    pub(super) median: usize,
    pub(super) hybrid_width: usize,
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
            // In whole numbers up to the last step, so that no order of rows matters.
            variance: (n * squares).saturating_sub(total * total) as f64 / (n * n) as f64,
            longest,
            empty_rows,
            bandwidth,
            // The middle row of a triangle has half of what the longest has.
            triangular: sums.one_side && rows > 0 && sums.median.abs_diff(longest / 2) <= 1 + longest / 8,
            hybrid_width: sums.hybrid_width,
        }
    }

    /// The format that suits the matrix, and why: `ell` for rows of about one length, `jds` for triangles, `coo` where
    /// most rows are empty, `hybrid` where few rows are much longer than the others, else `csr`. Measured on an H100: of
    /// rows of 3 to 10 entries `csr` takes 6.0 us and `hybrid` 11.5, of those of an arrow 21.3 and 14.2.
    ///
    /// ```
    /// use tilework::sparse::Csr;
    ///
    /// let n = 100;
    /// let (row_ptrs, col_idxs) = ((0..=n as u32).collect(), (0..n as u32).collect());
    /// let diagonal = Csr { rows: n, cols: n, row_ptrs, col_idxs, values: vec![2.0; n] };
    /// let seen = diagonal.analyse();
    /// assert_eq!((seen.longest, seen.bandwidth, seen.variance), (1, 0, 0.0));
    /// assert_eq!(seen.format().0, "ell");
    /// ```
    pub fn format(&self) -> (&'static str, String) {
        let Self { rows, entries, mean, longest, .. } = *self;
        let padded = |places: usize| places as f64 <= (1.0 + MAX_PADDING) * entries as f64;
        if entries == 0 {
            ("csr", "there are no entries".into())
        } else if mean < VERY_SPARSE {
            ("coo", format!("{mean:.2} entries a row in the mean: most rows are empty"))
        } else if padded(rows.saturating_mul(longest)) {
            (
                "ell",
                format!("rows have {mean:.1} entries in the mean and {longest} at the most: little padding"),
            )
        } else if self.triangular {
            ("jds", "the matrix is a triangle: rows of evenly falling length".into())
        } else if longest as f64 > OUTLIER as f64 * mean
            && self.hybrid_width > 0
            && padded(rows.saturating_mul(self.hybrid_width))
        {
            let width = self.hybrid_width;
            ("hybrid", format!("four of five rows have at most {width} entries, the longest {longest}"))
        } else {
            (
                "csr",
                format!("rows have {mean:.1} entries in the mean, {longest} at the most, and all between"),
            )
        }
    }
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, cols, entries, mean, variance, longest, empty_rows, bandwidth, .. } = *self;
        writeln!(f, "{rows} x {cols}, {entries} entries, bandwidth {bandwidth}")?;
        writeln!(
            f,
            "  rows        {mean:.2} entries in the mean, variance {variance:.2}, {longest} at the most"
        )?;
        writeln!(f, "  empty rows  {empty_rows}")?;
        let (format, why) = self.format();
        write!(f, "  format      {format}: {why}")
    }
}

impl Csr {
    /// What its rows look like. The matrix must be valid.
    pub fn analyse(&self) -> Statistics {
        let lengths = || self.row_ptrs.windows(2).map(|pair| (pair[1] - pair[0]) as usize);
        let longest = lengths().max().unwrap_or(0);
        // By halves of the range of lengths: it takes no memory.
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
        let places = || (0..self.rows).flat_map(|row| self.row(row).map(move |(col, _)| (row, col as usize)));
        Statistics::from_sums(&Sums {
            rows: self.rows,
            cols: self.cols,
            entries: self.entries(),
            squares: lengths().map(|len| (len as u128).pow(2)).sum(),
            longest,
            empty_rows: lengths().filter(|len| *len == 0).count(),
            bandwidth: places().map(|(row, col)| row.abs_diff(col)).max().unwrap_or(0),
            one_side: places().all(|(row, col)| col <= row) || places().all(|(row, col)| col >= row),
            median: nth(self.rows / 2),
            hybrid_width: nth(self.rows * 4 / 5),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Row r has the columns that `row` gives.
    fn matrix(rows: usize, cols: usize, row: impl Fn(usize) -> Vec<u32>) -> Csr {
        let mut csr = Csr { rows, cols, row_ptrs: vec![0], ..Csr::default() };
        for r in 0..rows {
            csr.col_idxs.extend(row(r));
            csr.row_ptrs.push(csr.col_idxs.len() as u32);
        }
        csr.values = vec![1.0; csr.col_idxs.len()];
        csr
    }

    #[test]
    fn statistics_are_as_counted_by_hand() {
        let statistics =
            matrix(4, 5, |r| [vec![1, 3], vec![], vec![0, 1, 2, 3, 4], vec![2]][r].clone()).analyse();
        assert_eq!((statistics.rows, statistics.cols, statistics.entries, statistics.longest), (4, 5, 8, 5));
        assert_eq!((statistics.mean, statistics.variance), (2.0, 3.5));
        assert_eq!((statistics.empty_rows, statistics.bandwidth, statistics.triangular), (1, 3, false));
        assert_eq!(statistics.hybrid_width, 5);
        assert_eq!(matrix(0, 0, |_| vec![]).analyse(), Statistics::default());
    }

    #[test]
    fn format_follows_the_rows() {
        let format = |csr: Csr| csr.analyse().format().0;
        let all = |n: usize| (0..n as u32).collect::<Vec<_>>();
        assert_eq!(format(matrix(50, 50, |_| vec![1, 2, 3])), "ell");
        assert_eq!(
            format(matrix(50, 50, |r| (r.saturating_sub(1)..(r + 2).min(50)).map(|c| c as u32).collect())),
            "ell"
        );
        assert_eq!(format(matrix(50, 50, |r| if r % 4 == 0 { vec![1] } else { vec![] })), "coo");
        assert_eq!(format(matrix(50, 50, |r| all(r + 1))), "jds");
        assert_eq!(format(matrix(50, 50, |r| (r as u32..50).collect())), "jds");
        assert_eq!(
            format(matrix(500, 500, |r| if r == 7 { all(500) } else { vec![0, 3, r as u32] })),
            "hybrid"
        );
        // Of all lengths, on both sides of the diagonal.
        let last = |len: usize| (500 - len as u32..500).collect();
        assert_eq!(format(matrix(500, 500, |r| last(r % 100))), "csr");
        assert_eq!(format(matrix(5, 5, |_| vec![])), "csr");
    }
}
