use super::prelude::*;

judges! {
    select => judge_select, select_columns => judge_select_columns, partition => judge_partition,
    split_parts => judge_split_parts, unique => judge_unique, run_length => judge_run_length,
    adjacent_difference => judge_adjacent_difference
}

fn judge_select(call: &OpCall) -> Result<Vec<Wanted>> {
    if settings(call)?.has("positions") {
        let flags = input::<u32>(call, 0)?;
        let flags = &flags[..there(call, flags.len())?];
        let kept = select(&(0..flags.len() as u32).collect::<Vec<_>>(), flags);
        return Ok(vec![Wanted::exact(&[kept.len()], kept)?]);
    }
    let flags = input::<u32>(call, 1)?;
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let x = input::<T>(call, 0)?;
        let kept = select(&x[..there(call, x.len())?], flags);
        Ok(vec![Wanted::exact(&[kept.len()], kept)?])
    })
}

/// Returns the elements of `input` with a nonzero flag.
pub fn select<T: Copy>(input: &[T], flags: &[u32]) -> Vec<T> {
    input.iter().zip(flags).filter(|(_, flag)| **flag != 0).map(|(x, _)| *x).collect()
}

fn judge_select_columns(call: &OpCall) -> Result<Vec<Wanted>> {
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

fn judge_partition(call: &OpCall) -> Result<Vec<Wanted>> {
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let x = input::<T>(call, 0)?;
        let there = there(call, x.len())?;
        let (all, _) = partition(&x[..there], &input::<u32>(call, 1)?[..there]);
        Ok(vec![Wanted::exact(&[there], all)?])
    })
}

/// Returns the elements of `input` with a nonzero flag, then the others, both in order; and how many have the flag.
pub fn partition<T: Copy>(input: &[T], flags: &[u32]) -> (Vec<T>, usize) {
    let mut kept = select(input, flags);
    let count = kept.len();
    let others: Vec<u32> = flags.iter().map(|flag| u32::from(*flag == 0)).collect();
    kept.extend(select(input, &others));
    (kept, count)
}

fn judge_split_parts(call: &OpCall) -> Result<Vec<Wanted>> {
    let count = option(call, "k")?;
    by_input!(call, 0, [f32, i32, u32], T => {
        let (x, parts) = (input::<T>(call, 0)?, input::<u32>(call, 1)?);
        let there = there(call, x.len())?;
        let (moved, counts) = split_parts(&x[..there], &parts[..there], count);
        Ok(vec![Wanted::exact(&[there], moved)?, Wanted::exact(&output_shape(call, 1), counts)?])
    })
}

/// Returns the elements of each part in turn, and how many each has. Numbers beyond the last part count as the last.
pub fn split_parts<T: Copy>(x: &[T], parts: &[u32], count: usize) -> (Vec<T>, Vec<u32>) {
    let last = count.saturating_sub(1) as u32;
    let of = |part: u32| x.iter().zip(parts).filter(move |(_, p)| (**p).min(last) == part).map(|(x, _)| *x);
    let all = (0..count as u32).map(|part| of(part).collect::<Vec<T>>());
    let all: Vec<Vec<T>> = all.collect();
    let counts = all.iter().map(|part| part.len() as u32).collect();
    (all.concat(), counts)
}

fn judge_unique(call: &OpCall) -> Result<Vec<Wanted>> {
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let x = input::<T>(call, 0)?;
        let firsts = unique(&x[..there(call, x.len())?]);
        Ok(vec![Wanted::exact(&[firsts.len()], firsts)?])
    })
}

/// Returns the first element of each run, in order. `==` decides: -0 equals +0, NaN equals nothing.
pub fn unique<T: Copy + PartialEq>(input: &[T]) -> Vec<T> {
    let head = |i: &usize| *i == 0 || input[*i] != input[i - 1];
    (0..input.len()).filter(head).map(|i| input[i]).collect()
}

fn judge_run_length(call: &OpCall) -> Result<Vec<Wanted>> {
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let x = input::<T>(call, 0)?;
        let (values, counts) = run_length(&x[..there(call, x.len())?]);
        let runs = [counts.len()];
        Ok(vec![Wanted::exact(&runs, values)?, Wanted::exact(&runs, counts)?])
    })
}

/// Returns the first element and the length of each run, by `==`.
pub fn run_length<T: Copy + PartialEq>(input: &[T]) -> (Vec<T>, Vec<u32>) {
    let (mut values, mut counts) = (Vec::new(), Vec::<u32>::new());
    for (i, &x) in input.iter().enumerate() {
        match counts.last_mut() {
            Some(count) if x == input[i - 1] => *count += 1,
            _ => {
                values.push(x);
                counts.push(1);
            }
        }
    }
    (values, counts)
}

fn judge_adjacent_difference(call: &OpCall) -> Result<Vec<Wanted>> {
    by_input!(call, 0, [f32, f16, i32, u32], T => {
        let x = input::<T>(call, 0)?;
        let x = &x[..there(call, x.len())?];
        let bound = adjacent_difference_bound(x);
        Ok(vec![Wanted::near(&output_shape(call, 0), adjacent_difference(x), bound)?])
    })
}

/// Returns each element less the one before; the first as it is.
pub fn adjacent_difference<T: Number>(input: &[T]) -> Vec<T> {
    let pairs = input.windows(2).map(|pair| T::narrow(pair[1].widen() - pair[0].widen()));
    input.first().copied().into_iter().chain(pairs).collect()
}

/// Returns the error bound of each difference: f32 rounds either way, and may take subnormal numbers for 0.
pub fn adjacent_difference_bound<T: Number>(input: &[T]) -> Vec<f64> {
    let unit = match size_of::<T>() {
        _ if !T::DTYPE.is_float() => return vec![0.0; input.len()],
        2 => 2f64.powi(-10),
        _ => 2f64.powi(-23),
    };
    let tiny = 2.0 * f64::from(f32::MIN_POSITIVE);
    let of = |x: &T| if x.to_f64().is_finite() { x.to_f64().abs() * unit + tiny } else { 0.0 };
    // Twice, since a largest number and its neighbour are a step apart.
    adjacent_difference(input).iter().map(|x| 2.0 * of(x)).collect()
}

#[cfg(test)]
#[path = "tests/select.rs"]
mod tests;
