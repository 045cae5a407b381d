use super::*;
use crate::reference::sort_positions;

fn check<T: SortKey>(keys: &[T], run: usize, parts: usize, descending: bool) {
    let width = 8 * T::DTYPE.size() as u32;
    let values: Vec<u32> = (0..keys.len() as u32).collect();
    let (mut sorted_keys, mut sorted_values) = (Vec::new(), Vec::new());
    for (keys, values) in keys.chunks(run).zip(values.chunks(run)) {
        let order = sort_positions(keys, descending, 0..width);
        sorted_keys.extend(order.iter().map(|&i| keys[i]));
        sorted_values.extend(order.iter().map(|&i| values[i]));
    }
    let (mut keys_out, mut values_out) = (vec![T::default(); keys.len()], values.clone());
    let cancel = Cancel::new();
    let sorted = (&sorted_keys[..], &sorted_values[..]);
    merge_in(parts, sorted, (&mut keys_out, &mut values_out), run, descending, &cancel).unwrap();
    let wanted: Vec<_> = sort_positions(keys, descending, 0..width).iter().map(|&i| i as u32).collect();
    assert_eq!(values_out, wanted, "runs of {run} in {parts} parts, descending {descending}");
    for (key, value) in keys_out.iter().zip(values_out) {
        assert_eq!(bytemuck::bytes_of(key), bytemuck::bytes_of(&keys[value as usize]));
    }
    let mut alone = vec![T::default(); keys.len()];
    merge_in(parts, (&sorted_keys, &[]), (&mut alone, &mut []), run, descending, &cancel).unwrap();
    assert_eq!(bytemuck::cast_slice::<T, u8>(&alone), bytemuck::cast_slice::<T, u8>(&keys_out));
}

#[test]
fn runs_are_merged_as_one_stable_sort() {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state >> 24
    };
    let numbers: Vec<u64> = (0..1000).map(|_| next()).collect();
    let special = [f32::NAN, -f32::NAN, 0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, 1.0, f32::MIN];
    let floats: Vec<f32> =
        numbers.iter().map(|n| if n % 3 == 0 { special[*n as usize % 8] } else { f32::from_bits(*n as u32) }).collect();
    let long: Vec<u64> = numbers.iter().map(|n| if n % 5 == 0 { u64::MAX } else { n << 30 }).collect();
    let signed: Vec<i32> = numbers.iter().map(|n| *n as i32 % 50).collect();
    for descending in [false, true] {
        for (run, parts) in [(1000, 3), (999, 2), (100, 1), (100, 7), (7, 4), (1, 3)] {
            check(&floats, run, parts, descending);
            check(&long, run, parts, descending);
            check(&signed, run, parts, descending);
            check(&[7u32; 1000], run, parts, descending);
        }
        check::<u32>(&[], 5, 2, descending);
    }
}

#[test]
fn equal_keys_are_shared_among_parts() {
    let cuts = cuts(&[7u32; 4000], 1000, 4, false).unwrap();
    for pair in cuts.windows(2) {
        let len: usize = pair[0].iter().zip(&pair[1]).map(|(a, b)| b - a).sum();
        assert!((500..2000).contains(&len), "{cuts:?}");
    }
}
