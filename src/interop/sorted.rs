//! Indices and entries in the form that other crates require.

use crate::error::{Result, err, with_room};
use crate::sparse::{Csc, Csr, Duplicates};
use std::borrow::Cow;

pub(super) fn indices_u32<I: Copy>(name: &str, from: &[I], number: impl Fn(I) -> Option<usize>) -> Result<Vec<u32>> {
    let mut list = with_room(name, from.len())?;
    for (at, &index) in from.iter().enumerate() {
        let index = number(index).and_then(|i| u32::try_from(i).ok());
        list.push(
            index.ok_or_else(|| err!(TooLarge, "{name}: index {at} is outside 0 to 2^32 - 1; split the matrix"))?,
        );
    }
    Ok(list)
}

/// Converts indices to the type of another crate.
pub(super) fn indices_to<I>(name: &str, from: &[u32], number: impl Fn(usize) -> Option<I>) -> Result<Vec<I>> {
    let mut list = with_room(name, from.len())?;
    for &index in from {
        list.push(number(index as usize).ok_or_else(|| {
            err!(TooLarge, "{name}: the index {index} exceeds {}; use a wider type", std::any::type_name::<I>())
        })?);
    }
    Ok(list)
}

/// Returns whether indices rise strictly within each line.
fn rises(ptrs: &[u32], idxs: &[u32]) -> bool {
    ptrs.windows(2).all(|pair| {
        let line = &idxs[pair[0] as usize..pair[1] as usize];
        line.windows(2).all(|two| two[0] < two[1])
    })
}

/// Sorts the columns of each row. Rejects duplicates.
pub(super) fn sorted_csr(csr: &Csr) -> Result<Cow<'_, Csr>> {
    csr.validate()?;
    if rises(&csr.row_ptrs, &csr.col_idxs) {
        return Ok(Cow::Borrowed(csr));
    }
    Ok(Cow::Owned(Csr::from_triplets(&csr.to_coo()?, Duplicates::Refuse)?))
}

/// Sorts the rows of each column. Rejects duplicates.
pub(super) fn sorted_csc(csc: &Csc) -> Result<Cow<'_, Csc>> {
    csc.validate()?;
    if rises(&csc.col_ptrs, &csc.row_idxs) {
        return Ok(Cow::Borrowed(csc));
    }
    let csr = csc.to_csr()?;
    Ok(Cow::Owned(sorted_csr(&csr)?.to_csc()?))
}
