use super::prelude::*;
use crate::dense::Concatenate;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let op = descriptor::<Concatenate>(call)?;
    by_input!(call, 0, [f32, f16, i32, u32, u8, i8], T => {
        let arrays = (0..op.parts().0.len()).map(|k| input::<T>(call, k)).collect::<Result<Vec<_>>>()?;
        Ok(vec![Wanted::exact(&op.output()?, concatenate(op, &arrays))?])
    })
}

/// Returns the elements in row-major order.
pub fn concatenate<T: Copy>(op: &Concatenate, arrays: &[&[T]]) -> Vec<T> {
    let (shapes, axis) = op.parts();
    let outer: usize = shapes[0][..axis].iter().product();
    let row = |k: usize| shapes[k][axis..].iter().product::<usize>();
    let rows = (0..outer).flat_map(|i| (0..arrays.len()).map(move |k| (i, k)));
    rows.flat_map(|(i, k)| &arrays[k][i * row(k)..(i + 1) * row(k)]).copied().collect()
}

#[cfg(test)]
#[path = "tests/concatenate.rs"]
mod tests;
