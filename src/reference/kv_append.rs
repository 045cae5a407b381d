//! New keys and values to their places in a cache.

use super::{Number, fp8_code, fp8_value};
use crate::attention::{KvAppend, KvType};
use half::f16;

/// Writes the new rows of k, or of v, into a cache: the numbers for which stand what is stored there.
pub fn kv_append<T: Number>(
    op: &KvAppend,
    new: &[T],
    lengths: &[u32],
    table: Option<&[u32]>,
    cache: &mut [f32],
) {
    let over = &op.over;
    let (d, tokens) = (over.head_size, over.queries);
    for (row, x) in new.chunks(d).enumerate() {
        let (pair, token) = (row / tokens, row % tokens);
        let (b, head) = (pair / over.kv_heads, pair % over.kv_heads);
        let key = lengths[b] as usize + token;
        if key >= over.keys {
            continue;
        }
        let at = match (over.paging, table) {
            (Some(paging), Some(table)) => {
                let page = table[b * over.pages_each() + key / paging.tokens] as usize;
                if page >= paging.pages {
                    continue;
                }
                (page * over.kv_heads + head) * paging.tokens + key % paging.tokens
            }
            _ => pair * over.keys + key,
        };
        let x: Vec<f32> = x.iter().map(|x| x.to_f64() as f32).collect();
        let kv = over.kv.unwrap_or(if size_of::<T>() == 2 { KvType::F16 } else { KvType::F32 });
        cache[at * d..][..d].copy_from_slice(&stored(kv, &x));
    }
}

/// The numbers for which a row stands once it is stored.
fn stored(kv: KvType, x: &[f32]) -> Vec<f32> {
    let largest = x.iter().fold(0f32, |most, x| most.max(x.abs()));
    let over = |most: f32, code: &dyn Fn(f32) -> f32| {
        let scale = largest / most;
        x.iter().map(|x| if scale == 0.0 { 0.0 } else { code(x / scale) * scale }).collect()
    };
    match kv {
        KvType::F32 => x.to_vec(),
        KvType::F16 => x.iter().map(|x| f16::from_f32(*x).to_f32()).collect(),
        KvType::Int8 => over(127.0, &f32::round_ties_even),
        KvType::Fp8 => over(448.0, &|x| fp8_value(fp8_code(x))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_go_behind_those_that_are_there() {
        let op = KvAppend::new(2, 1, 2, 3, 8);
        let new: Vec<f32> = (0..32).map(|i| (i / 8 + 1) as f32).collect();
        let mut cache = vec![0f32; 48];
        kv_append(&op, &new, &[1, 2], None, &mut cache);
        let firsts: Vec<f32> = cache.into_iter().step_by(8).collect();
        assert_eq!(firsts, [0.0, 1.0, 2.0, 0.0, 0.0, 3.0]);
    }

    #[test]
    fn pages_are_looked_up_and_may_be_missing() {
        let op = KvAppend::new(1, 1, 2, 32, 8).paged(16, 2);
        let mut cache = vec![0f32; 256];
        kv_append(&op, &[5f32; 16], &[15], Some(&[1, 7]), &mut cache);
        assert_eq!(cache.iter().position(|x| *x == 5.0), Some(31 * 8));
        assert_eq!(cache.iter().filter(|x| **x == 5.0).count(), 8);
    }

    #[test]
    fn rows_are_stored_in_steps_of_their_largest() {
        let x = [12.7f32, 0.05, -0.15, 0.0, 0.0, 0.0, 0.0, 0.0];
        let got = stored(KvType::Int8, &x);
        assert!((got[0] - 12.7).abs() < 1e-5 && (got[2] + 0.2).abs() < 0.11, "{got:?}");
        assert_eq!(stored(KvType::Fp8, &[448.0, 1.0, 17.0])[..], [448.0, 1.0, 16.0]);
        assert_eq!(stored(KvType::Int8, &[0.0; 3]), [0.0; 3]);
    }
}
