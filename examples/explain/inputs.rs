//! Makes an op's inputs from their shapes.

use super::common::{Failure, refuse, room_for};
use half::f16;
use tilework::program::Supply;
use tilework::sparse::Csr;
use tilework::{DType, HostArray, HostData};

/// A shape on the command line, such as `512x512` or `1000:u32`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    pub(crate) extents: Vec<usize>,
    /// Element type, if it differs from the others.
    pub(crate) dtype: Option<DType>,
}

/// Contents of arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fill {
    /// No contents if planning does not read them: in arrays of more than [`MAX_SEEN`] elements.
    Blank,
    Random,
}

/// Maximum elements of an array that planning may read, such as a filter's weights.
const MAX_SEEN: usize = 1 << 16;

/// Maximum elements of an input: 16 GiB of words.
const MOST: usize = 1 << 32;

pub(crate) fn dtype(text: &str) -> Result<DType, Failure> {
    let found = HostData::TYPES.into_iter().find(|t| t.to_string() == text);
    let names = || HostData::TYPES.map(|t| t.to_string()).join(", ");
    found.ok_or_else(|| refuse!("{text}: not an element type; there are {}", names()))
}

impl Shape {
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let (extents, dtype) = match text.split_once(':') {
            Some((extents, name)) => (extents, Some(dtype(name)?)),
            None => (text, None),
        };
        let wrong = || refuse!("--shape {text}: must be extents such as 512x512, optionally with a type after a colon");
        let extents = extents.split(['x', ',']).map(|n| n.trim().parse().map_err(|_| wrong()));
        let extents = extents.collect::<Result<Vec<usize>, _>>()?;
        count(&extents)?;
        Ok(Self { extents, dtype })
    }
}

/// Returns the elements of a shape.
fn count(extents: &[usize]) -> Result<usize, Failure> {
    let n = extents.iter().try_fold(1usize, |n, e| n.checked_mul(*e)).filter(|n| *n <= MOST);
    n.ok_or_else(|| refuse!("a shape of {extents:?} has more than {MOST} elements; take a smaller one"))
}

/// Makes arrays of the given shapes, then of those that the op derives from them.
pub(crate) struct Made<'a> {
    /// Shapes not used yet.
    given: &'a [Shape],
    dtype: DType,
    fill: Fill,
    random: Random,
    /// Descriptions of the arrays.
    pub(crate) described: Vec<String>,
}

impl<'a> Made<'a> {
    pub(crate) fn new(given: &'a [Shape], dtype: DType, fill: Fill) -> Self {
        Self { given, dtype, fill, random: Random(0x9e37_79b9_7f4a_7c15), described: Vec::new() }
    }
}

impl Supply for Made<'_> {
    fn supply(
        &mut self, name: &str, shape: Option<&[usize]>, dtype: Option<DType>, below: Option<usize>,
    ) -> Result<HostArray, String> {
        let (given, shape) = match (self.given.split_first(), shape) {
            (Some((given, others)), _) => {
                self.given = others;
                (given.dtype, given.extents.clone())
            }
            (None, Some(shape)) => (None, shape.to_vec()),
            (None, None) => {
                return Err(format!("--shape is missing; give the shape of input {name}, such as --shape 512x512"));
            }
        };
        let n = count(&shape).map_err(|e| e.to_string())?;
        if self.fill == Fill::Random {
            // The largest element has 4 bytes.
            room_for(&format!("the input {name}"), n, 4).map_err(|e| e.to_string())?;
        }
        let dtype = given.or(dtype).unwrap_or(self.dtype);
        let array = self.random.data(dtype, n, below, self.fill).and_then(|data| HostArray::new(&shape, data));
        let array = array.map_err(|e| e.to_string())?;
        self.described.push(array.to_string());
        Ok(array)
    }

    fn has_more(&self) -> bool {
        !self.given.is_empty()
    }
}

/// Makes a sparse matrix of `entries` entries per row on average: most rows have half of that, a few many more.
pub(crate) fn matrix(rows: usize, cols: usize, entries: usize) -> Result<Csr, Failure> {
    count(&[rows, entries])?;
    if rows >= u32::MAX as usize || cols >= u32::MAX as usize {
        return Err(refuse!("a matrix of {rows} x {cols}: rows and columns are limited to 2^32 - 2"));
    }
    // A growing list exists twice for a moment.
    room_for(&format!("a matrix of {rows} rows"), rows + 4 * rows * entries, 4)?;
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut a = Csr { rows, cols, row_ptrs: vec![0], ..Csr::default() };
    for _ in 0..rows {
        let skew = 0.5 / (random.float() + 1e-4).sqrt();
        let wanted = ((entries as f32 * skew).round() as usize).max(usize::from(entries > 0)).min(cols);
        for i in 0..wanted {
            // One entry in each of equal parts of the row: sorted, without repetition.
            let (begin, end) = (i * cols / wanted, (i + 1) * cols / wanted);
            a.col_idxs.push((begin + random.next() as usize % (end - begin)) as u32);
            a.values.push(random.float() + 0.5);
        }
        let all = u32::try_from(a.col_idxs.len());
        a.row_ptrs.push(all.map_err(|_| refuse!("a matrix of {rows} rows with {entries} entries each is too large"))?);
    }
    Ok(a)
}

/// xorshift64* (Vigna 2016).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// Returns a number in [0, 1).
    fn float(&mut self) -> f32 {
        (self.next() & 0xff_ffff) as f32 / 16_777_216.0
    }

    fn data(&mut self, dtype: DType, n: usize, below: Option<usize>, fill: Fill) -> tilework::Result<HostData> {
        if fill == Fill::Blank && n > MAX_SEEN {
            return Ok(HostData::Unseen(dtype, n));
        }
        let below = below.map_or(usize::MAX, |below| below.max(1));
        Ok(match dtype {
            DType::F32 => (0..n).map(|_| self.float()).collect::<Vec<_>>().into(),
            DType::F16 => (0..n).map(|_| f16::from_f32(self.float())).collect::<Vec<_>>().into(),
            DType::I32 => (0..n).map(|_| self.next() as i32).collect::<Vec<_>>().into(),
            DType::U32 => (0..n).map(|_| (self.next() as usize % below) as u32).collect::<Vec<_>>().into(),
            DType::U8 => (0..n).map(|_| self.next() as u8).collect::<Vec<_>>().into(),
            DType::I8 => (0..n).map(|_| self.next() as i8).collect::<Vec<_>>().into(),
            other => HostData::zeros(other, n)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilework::program::{Ask, Settings};

    #[test]
    fn reads_shapes_and_rejects_other_text() {
        let shape = |text| Shape::parse(text).ok();
        assert_eq!(shape("3x4"), Some(Shape { extents: vec![3, 4], dtype: None }));
        assert_eq!(shape("3,4:u8"), Some(Shape { extents: vec![3, 4], dtype: Some(DType::U8) }));
        for wrong in ["", "3x", "-1", "3x4:u9", "a", "99999999999x9", "18446744073709551615x2"] {
            assert_eq!(shape(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_matrix_has_about_as_many_entries_and_all_in_order() {
        let a = matrix(1000, 300, 16).unwrap();
        assert!((8000..32_000).contains(&a.values.len()), "{}", a.values.len());
        assert_eq!((a.row_ptrs.len(), a.row_ptrs[1000] as usize), (1001, a.col_idxs.len()));
        for row in a.row_ptrs.windows(2) {
            let columns = &a.col_idxs[row[0] as usize..row[1] as usize];
            assert!(columns.windows(2).all(|c| c[0] < c[1]) && columns.iter().all(|c| *c < 300));
        }
        assert!(matrix(3, 0, 5).unwrap().values.is_empty());
    }

    /// Makes the inputs of an op from the first one's shape.
    fn made(op: &str, shape: &str, fill: Fill) -> Vec<HostArray> {
        let op = tilework::operations().find(|o| o.name == op).unwrap();
        let (settings, given) = (Settings::new(op), [Shape::parse(shape).unwrap()]);
        let mut made = Made::new(&given, DType::F32, fill);
        let call = op.build(Ask::new(&settings).supplied_by(&mut made)).unwrap();
        call.operands.iter().filter_map(|role| role.input().cloned()).collect()
    }

    #[test]
    fn arrays_are_blank_only_where_planning_cannot_see_them() {
        let made = |shape: &str, fill| made("map", shape, fill)[0].data().to_f64();
        assert_eq!(made("256x256", Fill::Blank), made("256x256", Fill::Random));
        assert!(made("65537", Fill::Blank).is_empty());
        assert!(made("65537", Fill::Random).iter().any(|x| *x != 0.0));
    }

    #[test]
    fn indices_stay_within_their_table() {
        let inputs = made("cross-entropy", "7x3", Fill::Blank);
        let HostData::U32(labels) = inputs[1].data() else { panic!("labels are of u32") };
        assert!(labels.len() == 7 && labels.iter().all(|l| *l < 3), "{labels:?}");
    }
}
