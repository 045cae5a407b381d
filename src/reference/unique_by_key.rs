use super::prelude::*;

pub(super) fn judge(call: &OpCall) -> Result<Vec<Wanted>> {
    // The values are the last input: behind the length, if there is one.
    let last = call.inputs().count().saturating_sub(1);
    by_input!(call, 0, [f32, f16, i32, u32], K => by_input!(call, last, [f32, i32, u32], V => {
        let there = there(call, input::<K>(call, 0)?.len())?;
        let (keys, values) = unique_by_key(front_of::<K>(call, 0, there)?, front_of::<V>(call, last, there)?);
        Ok(vec![Wanted::exact(&[keys.len()], keys)?, Wanted::exact(&[values.len()], values)?])
    }))
}

/// Returns the first key of each run, in order, and its value. `==` decides: -0 equals +0, NaN equals nothing.
pub fn unique_by_key<K: Copy + PartialEq, V: Copy>(keys: &[K], values: &[V]) -> (Vec<K>, Vec<V>) {
    let head = |&(i, (key, _)): &(usize, (&K, &V))| i == 0 || *key != keys[i - 1];
    keys.iter().zip(values).enumerate().filter(head).map(|(_, (key, value))| (*key, *value)).unzip()
}

#[cfg(test)]
#[path = "tests/unique_by_key.rs"]
mod tests;
