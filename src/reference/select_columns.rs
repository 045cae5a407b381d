use super::prelude::*;
use super::select;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    let flags = input::<u32>(call, 0)?;
    let flags = &flags[..there(call, flags.len())?];
    let first = 1 + usize::from(named::<u32>(call, "length")?.is_some());
    let column = |at: usize| {
        by_input!(call, at, [f32, f16, i32, u32, u8, i8], T => {
            let kept = select(input::<T>(call, at)?, flags);
            Wanted::exact(&[kept.len()], kept)
        })
    };
    (first..call.inputs().count()).map(column).collect()
}
