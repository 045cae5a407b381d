//! Inputs of an op, made up from their shapes.

use super::array::{Array, Data, refuse};
use super::failure::{Failure, room_for};
use half::f16;
use tilework::DType;
use tilework::sparse::Csr;

/// A shape on the command line: `512x512`, or `1000:u32`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    pub(crate) extents: Vec<usize>,
    /// Type of the elements, where it is not that of the others.
    pub(crate) dtype: Option<DType>,
}

/// What arrays hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fill {
    /// Zeros where planning cannot see them: in arrays of more than [`MAX_SEEN`] elements.
    Blank,
    Random,
}

/// Elements of an array that planning may look at, as it does at the weights of a filter.
const MAX_SEEN: usize = 1 << 16;

/// Elements of an input at the most: 16 GiB of words.
const MOST: usize = 1 << 32;

const DTYPES: [DType; 6] = [DType::F32, DType::F16, DType::I32, DType::U32, DType::U8, DType::I8];

pub(crate) fn dtype(text: &str) -> Result<DType, Failure> {
    let found = DTYPES.into_iter().find(|t| t.to_string() == text);
    let names = || DTYPES.map(|t| t.to_string()).join(", ");
    found.ok_or_else(|| refuse!("{text}: no type of elements; there are {}", names()))
}

impl Shape {
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let (extents, dtype) = match text.split_once(':') {
            Some((extents, name)) => (extents, Some(dtype(name)?)),
            None => (text, None),
        };
        let wrong = || {
            refuse!(
                "--shape {text}: must be extents as in 512x512, with a type behind a colon if it is not that of the others"
            )
        };
        let extents = extents.split(['x', ',']).map(|n| n.trim().parse().map_err(|_| wrong()));
        let extents = extents.collect::<Result<Vec<usize>, _>>()?;
        count(&extents)?;
        Ok(Self { extents, dtype })
    }
}

/// Elements of a shape.
fn count(extents: &[usize]) -> Result<usize, Failure> {
    let n = extents.iter().try_fold(1usize, |n, e| n.checked_mul(*e)).filter(|n| *n <= MOST);
    n.ok_or_else(|| refuse!("a shape of {extents:?} has more than {MOST} elements; take a smaller one"))
}

/// The shape of input `i` of the op where none is given, from those before it.
fn follows(op: &str, i: usize, before: &[Vec<usize>]) -> Option<Vec<usize>> {
    let first = before.first()?;
    let last = *first.last()?;
    Some(match (op, i, &first[..]) {
        ("gemm" | "gemm-int8", 1, &[m, k]) => vec![k, m],
        ("gemm-batched", 1, &[batch, m, k]) => vec![batch, k, m],
        ("gemv", 1, &[_, n]) => vec![n],
        ("conv1d", 1, _) => vec![5],
        ("conv2d", 1, _) => vec![5; 2],
        ("conv3d", 1, _) => vec![5; 3],
        ("conv" | "conv-transpose", 1, &[_, c, _, _]) => vec![c, c, 3, 3],
        ("layer-norm" | "rms-norm" | "layer-norm-backward" | "rms-norm-backward", 1, _) => vec![last],
        ("batch-norm", _, &[_, c, _, _]) => vec![c],
        ("cross-entropy" | "gather-rows" | "mean-pool", 1, _) => vec![first[0]],
        ("dequantize", 1, _) => first[..first.len() - 1].to_vec(),
        ("rope", 1 | 2, &[_, _, tokens, size]) => vec![tokens, size / 2],
        ("adam", 4, _) => vec![2],
        _ => first.clone(),
    })
}

/// The type of input `i`, where it is none of floats of one's choice; and the first number that an index must not reach.
fn indices(op: &str, i: usize, shapes: &[Vec<usize>]) -> Option<(DType, usize)> {
    let first = shapes.first()?;
    Some(match (op, i) {
        ("select" | "partition" | "segmented-reduce" | "segmented-scan", 1) => (DType::U32, 2),
        ("sort", 1) => (DType::U32, usize::MAX),
        ("gather-rows", 1) => (DType::U32, first[0]),
        ("cross-entropy", 1) => (DType::U32, *first.get(1)?),
        ("mean-pool", 1) => (DType::U32, *first.get(1)?),
        ("rope", 3) => (DType::U32, *shapes.get(1)?.first()?),
        ("gemm-int8", _) | ("dequantize", 0) => (DType::I8, usize::MAX),
        _ => return None,
    })
}

/// Whether input `i` is of f32 whatever the first is.
fn is_always_f32(op: &str, i: usize) -> bool {
    i > 0 && matches!(op, "conv1d" | "conv2d" | "conv3d" | "rope" | "dequantize")
}

/// The arrays of an op that takes at least `least` of them.
pub(crate) fn arrays(
    op: &str,
    least: usize,
    given: &[Shape],
    dtype: DType,
    fill: Fill,
) -> Result<Vec<Array>, Failure> {
    let mut shapes: Vec<_> = given.iter().map(|s| s.extents.clone()).collect();
    while shapes.len() < least {
        let Some(next) = follows(op, shapes.len(), &shapes) else {
            return Err(refuse!(
                "{op}: --shape is missing; it says what the first input is, as in --shape 512x512"
            ));
        };
        shapes.push(next);
    }
    let elements = shapes.iter().map(|shape| count(shape)).sum::<Result<usize, Failure>>()?;
    // No element has more bytes.
    room_for(&format!("{op}: the inputs"), elements, 4)?;
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut arrays = Vec::with_capacity(shapes.len());
    for (i, shape) in shapes.iter().enumerate() {
        let n = count(shape)?;
        let of_index = indices(op, i, &shapes);
        let usual = match of_index {
            Some((dtype, _)) => dtype,
            None if is_always_f32(op, i) => DType::F32,
            None => dtype,
        };
        let dtype = given.get(i).and_then(|s| s.dtype).unwrap_or(usual);
        let below = of_index.map_or(usize::MAX, |(_, below)| below.max(1));
        arrays.push(Array { shape: shape.clone(), data: random.data(dtype, n, below, fill)? });
    }
    Ok(arrays)
}

/// A sparse matrix of so many entries a row on average: most rows have half of that, a few many times as much.
pub(crate) fn matrix(rows: usize, cols: usize, entries: usize) -> Result<Csr, Failure> {
    count(&[rows, entries])?;
    if rows >= u32::MAX as usize || cols >= u32::MAX as usize {
        return Err(refuse!(
            "a matrix of {rows} x {cols}: at most 2^32 - 2 rows and columns can be numbered"
        ));
    }
    // A list that grows is held twice for a moment.
    room_for(&format!("a matrix of {rows} rows"), rows + 4 * rows * entries, 4)?;
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut a = Csr { rows, cols, row_ptrs: vec![0], ..Csr::default() };
    for _ in 0..rows {
        let skew = 0.5 / (random.float() + 1e-4).sqrt();
        let wanted = ((entries as f32 * skew).round() as usize).max(usize::from(entries > 0)).min(cols);
        for i in 0..wanted {
            // One in each of as many parts of the row: in order, and none twice.
            let (begin, end) = (i * cols / wanted, (i + 1) * cols / wanted);
            a.col_idxs.push((begin + random.next() as usize % (end - begin)) as u32);
            a.values.push(random.float() + 0.5);
        }
        let all = u32::try_from(a.col_idxs.len());
        a.row_ptrs.push(
            all.map_err(|_| refuse!("a matrix of {rows} rows with {entries} entries each is too large"))?,
        );
    }
    Ok(a)
}

/// Zeros, which take no memory until they are written to.
fn blank(dtype: DType, n: usize) -> Result<Data, Failure> {
    Ok(match dtype {
        DType::F32 => vec![0f32; n].into(),
        DType::F16 => vec![f16::ZERO; n].into(),
        DType::I32 => vec![0i32; n].into(),
        DType::U32 => vec![0u32; n].into(),
        DType::U8 => vec![0u8; n].into(),
        DType::I8 => vec![0i8; n].into(),
        other => return Err(refuse!("{other}: no type of elements that this program makes")),
    })
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

    /// From 0 to 1.
    fn float(&mut self) -> f32 {
        (self.next() & 0xff_ffff) as f32 / 16_777_216.0
    }

    fn data(&mut self, dtype: DType, n: usize, below: usize, fill: Fill) -> Result<Data, Failure> {
        if fill == Fill::Blank && n > MAX_SEEN {
            return blank(dtype, n);
        }
        Ok(match dtype {
            DType::F32 => (0..n).map(|_| self.float()).collect::<Vec<_>>().into(),
            DType::F16 => (0..n).map(|_| f16::from_f32(self.float())).collect::<Vec<_>>().into(),
            DType::I32 => (0..n).map(|_| self.next() as i32).collect::<Vec<_>>().into(),
            DType::U32 => (0..n).map(|_| (self.next() as usize % below) as u32).collect::<Vec<_>>().into(),
            DType::U8 => (0..n).map(|_| self.next() as u8).collect::<Vec<_>>().into(),
            DType::I8 => (0..n).map(|_| self.next() as i8).collect::<Vec<_>>().into(),
            other => return Err(refuse!("{other}: no type of elements that this program makes")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_read_and_what_is_none_is_refused() {
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

    #[test]
    fn arrays_are_blank_only_where_planning_cannot_see_them() {
        let made = |shape: &str, fill| {
            let given = [Shape::parse(shape).unwrap()];
            let Data::F32(x) = arrays("map", 1, &given, DType::F32, fill).unwrap().remove(0).data else {
                panic!("it is of f32")
            };
            x
        };
        assert_eq!(made("256x256", Fill::Blank), made("256x256", Fill::Random));
        assert_eq!(made("65537", Fill::Blank), vec![0.0; 65537]);
        assert!(made("65537", Fill::Random).iter().any(|x| *x != 0.0));
    }

    #[test]
    fn indices_stay_in_what_they_index() {
        let given = [Shape::parse("7x3").unwrap()];
        let labels = arrays("cross-entropy", 2, &given, DType::F32, Fill::Blank).unwrap().pop().unwrap();
        let Data::U32(labels) = labels.data else { panic!("labels are of u32") };
        assert!(labels.len() == 7 && labels.iter().all(|l| *l < 3), "{labels:?}");
    }
}
