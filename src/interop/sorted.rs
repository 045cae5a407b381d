//! Indices and entries as other crates demand them.

use crate::error::{Result, err, with_room};
use crate::sparse::{Csc, Csr, Duplicates};
use std::borrow::Cow;

/// Indices as ours are.
pub(super) fn indices_u32<I: Copy>(
    name: &str,
    from: &[I],
    number: impl Fn(I) -> Option<usize>,
) -> Result<Vec<u32>> {
    let mut list = with_room(name, from.len())?;
    for (at, &index) in from.iter().enumerate() {
        let index = number(index).and_then(|i| u32::try_from(i).ok());
        list.push(index.ok_or_else(|| {
            err!(
                TooLarge,
                "{name}: index {at} is not within 0 to 2^32 - 1, which kernels can count; split the matrix"
            )
        })?);
    }
    Ok(list)
}

/// Indices as another crate has them.
pub(super) fn indices_to<I>(name: &str, from: &[u32], number: impl Fn(usize) -> Option<I>) -> Result<Vec<I>> {
    let mut list = with_room(name, from.len())?;
    for &index in from {
        list.push(number(index as usize).ok_or_else(|| {
            err!(
                TooLarge,
                "{name}: the index {index} is above the largest of {}; use a wider type",
                std::any::type_name::<I>()
            )
        })?);
    }
    Ok(list)
}

/// Whether indices rise within each line, none twice.
fn rises(ptrs: &[u32], idxs: &[u32]) -> bool {
    ptrs.windows(2).all(|pair| {
        let line = &idxs[pair[0] as usize..pair[1] as usize];
        line.windows(2).all(|two| two[0] < two[1])
    })
}

/// The matrix with rising columns in each row. Rejects a position that occurs twice.
pub(super) fn sorted_csr(csr: &Csr) -> Result<Cow<'_, Csr>> {
    csr.validate()?;
    if rises(&csr.row_ptrs, &csr.col_idxs) {
        return Ok(Cow::Borrowed(csr));
    }
    Ok(Cow::Owned(Csr::from_triplets(&csr.to_coo()?, Duplicates::Refuse)?))
}

/// The matrix with rising rows in each column. Rejects a position that occurs twice.
pub(super) fn sorted_csc(csc: &Csc) -> Result<Cow<'_, Csc>> {
    csc.validate()?;
    if rises(&csc.col_ptrs, &csc.row_idxs) {
        return Ok(Cow::Borrowed(csc));
    }
    let csr = csc.to_csr()?;
    Ok(Cow::Owned(sorted_csr(&csr)?.to_csc()?))
}
